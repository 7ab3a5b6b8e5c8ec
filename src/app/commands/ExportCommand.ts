import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Exported } from "../../operations/operator/Exports.ts"
import { Host } from "../Host.ts"

/** Writes an export to standard output as it is read, for as long as somebody takes it. There is no bound on its rows. */
export const write = ({ text }: Exported) =>
  Effect.flatMap(Host, ({ stdout }) => Stream.runForEachWhile(text, stdout.send))
