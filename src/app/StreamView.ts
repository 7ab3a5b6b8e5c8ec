import type { Globals } from "../surfaces/cli/Globals.ts"
import type { View } from "../surfaces/cli/Paint.ts"
import { painted, unpainted } from "../surfaces/cli/Paint.ts"
import type { Output, Streams } from "./Host.ts"
import * as Logging from "./Logging.ts"

/** Returns the view of an output stream, with the flags of a command line applied. `now` is in epoch seconds. */
export const viewOn = (
  output: Output,
  env: Streams["env"],
  { color, utc }: Pick<Globals["Service"], "color" | "utc">,
  now: number
): View => ({
  columns: output.isTerminal ? output.columns : undefined,
  isTerminal: output.isTerminal,
  paint: Logging.wantsColour(color, output, env) ? painted : unpainted,
  utc,
  now
})
