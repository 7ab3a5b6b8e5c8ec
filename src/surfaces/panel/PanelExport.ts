import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { UnknownWord } from "../../domain/OperatorError.ts"
import { Database } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import type { Exported } from "../../operations/Exports.ts"
import type { Format } from "../../operations/ExportText.ts"
import type { SessionIdentity } from "../../operations/operators/Identity.ts"
import type { Failure } from "../admin/Failures.ts"
import type { Given, Sent } from "./Route.ts"

const formats: ReadonlyArray<Format> = ["csv", "json"]

/** Sends a list as a file while it is read. The export is logged once the whole file has been sent. */
export const exportOf = <E extends Failure, R>(
  { query, sender }: Given<SessionIdentity>,
  list: string,
  made: (format: Format) => Effect.Effect<Exported, E, R>
) =>
  Effect.gen(function*() {
    const word = query.get("format") ?? "csv"
    const format = formats.find((one) => one === word)
    if (format === undefined) return yield* new UnknownWord({ name: "format", word: word.slice(0, 64), known: formats })
    const { fileName, mediaType, text } = yield* made(format)
    const context = yield* Effect.context<Database>()
    let octets = 0
    const counted = Stream.tap(Stream.encodeText(text), (chunk) => Effect.sync(() => void (octets += chunk.length)))
    const told = Effect.suspend(() =>
      emit("admin_export_completed", { username: sender.username, list, format, body_bytes: octets })
    )
    const sent: Sent = {
      _tag: "Sent",
      answer: {
        status: 200,
        headers: { "content-type": mediaType, "content-disposition": `attachment; filename="${fileName}"` },
        stream: Stream.provideContext(Stream.concat(counted, Stream.fromEffectDrain(told)), context)
      }
    }
    return sent
  })
