import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import type { Database } from "../../../kernel/sql/Database.ts"
import { emit } from "../../../kernel/telemetry/EventLog.ts"
import type { Exported } from "../../../operations/Exports.ts"
import { identity } from "./RequestCaller.ts"

/** A file that is sent while it is read. It is logged once the whole file was sent. */
export const fileAnswer = (list: string, format: string, { fileName, mediaType, text }: Exported) =>
  Effect.gen(function*() {
    const { username } = yield* identity
    const context = yield* Effect.context<Database>()
    let octets = 0
    const counted = Stream.tap(Stream.encodeText(text), (chunk) => Effect.sync(() => void (octets += chunk.length)))
    const told = Effect.suspend(() => emit("admin_export_completed", { username, list, format, body_bytes: octets }))
    return HttpServerResponse.stream(
      Stream.provideContext(Stream.concat(counted, Stream.fromEffectDrain(told)), context),
      {
        contentType: mediaType,
        headers: { "content-disposition": `attachment; filename="${fileName}"` }
      }
    )
  })
