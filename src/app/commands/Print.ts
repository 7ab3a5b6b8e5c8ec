import { Console } from "effect"
import type { Effect } from "effect"
import type { Rendered } from "../../surfaces/cli/Rendered.ts"

/** Prints an object as JSON or as text. */
export const print = (json: boolean, object: unknown, text: () => string | Rendered): Effect.Effect<void> =>
  Console.log(json ? JSON.stringify(object) : text())
