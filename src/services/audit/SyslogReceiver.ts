import * as Effect from "effect/Effect"
import { oneLine } from "../../engine/HiddenText.ts"
import { parseBindAddress } from "../../engine/net/SocketAddress.ts"
import type { SyslogPeer, SyslogTls } from "../../engine/net/SyslogTls.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { AuditReceiver, PushedRow } from "./AuditReceiver.ts"
import { PushFailed } from "./AuditReceiver.ts"
import { pairIn, rootsIn } from "./PushFiles.ts"
import { frameOf, messageOf } from "./SyslogMessage.ts"

const section = "audit.syslog"
const longestShown = 200

/** Makes the receiver of `[audit.syslog]`. `host` names the installation. */
export const syslogReceiver = (
  settings: Config["audit"]["syslog"],
  host: string,
  syslog: SyslogTls["Service"]
): AuditReceiver => {
  const rootsKey = `${section}.ca_path`
  const peer = Effect.gen(function*() {
    const place = parseBindAddress(settings.address)
    if (place === undefined) return yield* new PushFailed({ detail: `${section}.address is not host:port` })
    const roots = yield* rootsIn(rootsKey, settings.ca_path)
    const pair = yield* pairIn(section, settings)
    return { ...place, roots, rootsKey, pair } satisfies SyslogPeer
  })
  const limited = <A>(self: Effect.Effect<A, PushFailed>) =>
    Effect.timeoutOrElse(self, {
      duration: settings.timeout_ms,
      orElse: () =>
        Effect.fail(
          new PushFailed({
            detail: `it did not read everything and end the connection within ${settings.timeout_ms} ms`
          })
        )
    })
  const attempt = (use: (peer: SyslogPeer) => ReturnType<SyslogTls["Service"]["reach"]>) =>
    limited(
      Effect.flatMap(peer, (found) =>
        Effect.mapError(use(found), ({ detail }) =>
          new PushFailed({ detail: oneLine(detail).slice(0, longestShown) })))
    )
  return {
    name: "syslog",
    timeoutMillis: settings.timeout_ms,
    confirms: false,
    send: (rows: ReadonlyArray<PushedRow>) =>
      attempt((found) => syslog.deliver(found, rows.map((row) => frameOf(messageOf(row, host, settings))).join(""))),
    reach: attempt(syslog.reach)
  }
}
