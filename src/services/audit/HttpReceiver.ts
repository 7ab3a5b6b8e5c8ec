import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { oneLine } from "../../engine/HiddenText.ts"
import { retryAfter } from "../../engine/net/RetryAfter.ts"
import type { Web } from "../../engine/net/Web.ts"
import { decidedByHead } from "../../engine/net/Web.ts"
import { currentMillis } from "../../engine/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { AuditReceiver } from "./AuditReceiver.ts"
import { PushFailed } from "./AuditReceiver.ts"
import { rootsIn, tokenIn } from "./PushFiles.ts"

const section = "audit.http"
/** The highest number of octets of an answer that are read. */
const mostAnswered = 65_536
const longestShown = 200

/** Makes the receiver of `[audit.http]`. It has taken the rows if it answers with a status of success. */
export const httpReceiver = (settings: Config["audit"]["http"], web: Web["Service"]): AuditReceiver => {
  const { ca_path, timeout_ms, token_path } = settings
  const rootsKey = `${section}.ca_path`
  const files = Effect.gen(function*() {
    const token = yield* tokenIn(`${section}.token_path`, token_path)
    return { url: new URL(settings.url), roots: yield* rootsIn(rootsKey, ca_path), rootsKey, token }
  })
  const limited = <A>(self: Effect.Effect<A, PushFailed>) =>
    Effect.timeoutOrElse(self, {
      duration: timeout_ms,
      orElse: () => Effect.fail(new PushFailed({ detail: `no answer within ${timeout_ms} ms` }))
    })
  return {
    name: "http",
    timeoutMillis: timeout_ms,
    confirms: true,
    send: (rows) =>
      Effect.gen(function*() {
        const { token, ...target } = yield* limited(files)
        // The answer may repeat the request. The token is masked before the text is shortened.
        const shown = (text: string): string =>
          oneLine(token === undefined ? text : text.replaceAll(Redacted.value(token), "***")).slice(0, longestShown)
        const { body, headers, status } = yield* web.send({
          method: "POST",
          ...target,
          headers: {
            "content-type": "application/x-ndjson",
            ...token === undefined ? {} : { authorization: `Bearer ${Redacted.value(token)}` }
          },
          body: rows.map((row) => `${JSON.stringify(row)}\n`).join(""),
          maxBytes: mostAnswered,
          withinMillis: timeout_ms
        }).pipe(decidedByHead, Effect.mapError(({ detail }) => new PushFailed({ detail: shown(detail) })))
        if (status >= 200 && status < 300) return
        const words = shown(body.toString("utf8"))
        return yield* new PushFailed({
          detail: words === "" ? `answered ${status}` : `answered ${status}: ${words}`,
          isTooLarge: status === 413,
          afterSeconds: retryAfter(headers["retry-after"], yield* currentMillis)
        })
      }),
    reach: limited(Effect.flatMap(files, ({ roots, url }) =>
      Effect.mapError(
        web.reach({ url, roots, rootsKey }),
        ({ detail }) => new PushFailed({ detail: oneLine(detail).slice(0, longestShown) })
      )))
  }
}
