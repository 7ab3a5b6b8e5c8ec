import { Effect, Stream } from "effect"
import type { Exported } from "../../operations/Exports.ts"
import { Host } from "../Host.ts"

/** Writes an export to standard output as it is read. There is no bound on its rows. */
export const write = ({ text }: Exported) =>
  Effect.flatMap(Host, ({ stdout }) => Stream.runForEach(text, (part) => Effect.sync(() => stdout.write(part))))
