import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Exported } from "../../operations/operator/Exports.ts"
import { Host } from "../Host.ts"

/**
 * Writes an export to standard output while its rows are read, until the reader of the output stops reading. The number
 * of rows is not limited.
 */
export const write = ({ text }: Exported) =>
  Effect.flatMap(Host, ({ stdout }) => Stream.runForEachWhile(text, stdout.send))
