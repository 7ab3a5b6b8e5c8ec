import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Entropy } from "../crypto/Entropy.ts"
import type { TlsSettings } from "../engine/http/BoundSocket.ts"
import type { Listener } from "../engine/http/Listener.ts"
import * as TlsFiles from "../engine/http/TlsFiles.ts"
import type { Loops } from "../engine/Loops.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { CommandFailed } from "./CommandFailed.ts"
import { filesFailed } from "./CommandFailed.ts"

/* TLS of the listeners that may have it. */

/** The listeners that may have TLS. */
export type TlsListener = "acme" | "admin"

/** Returns whether a listener uses TLS, and where its key and certificate are. */
export const tlsOf = (config: Config, listener: TlsListener) => {
  const [section, { base_url, tls: { cert_path, enabled, handshake_timeout_ms, key_path } }] = listener === "acme"
    ? ["server.tls", config.server] as const
    : ["admin.tls", config.admin] as const
  const settings: TlsFiles.TlsFileSettings = {
    listener,
    section,
    cert_path,
    key_path,
    host: new URL(base_url).hostname
  }
  return { enabled, handshakeTimeoutMillis: handshake_timeout_ms, settings }
}

/** The TLS of a listener. */
export interface ListenerTls {
  /** The TLS settings. Absent if the listener does not use TLS. */
  readonly settings: TlsSettings | undefined
  /** Returns when the first certificate of the current chain expires, or undefined if there is no TLS. */
  readonly notAfter: () => Date | undefined
  /**
   * Watches the expiry of the certificate while the generation is in use. If the certificate is renewed, makes the
   * listener serve the new one.
   */
  readonly watch: (listener: Listener) => Effect.Effect<void, never, Entropy | Loops>
}

/** Reads the key and certificate of a listener, if it uses TLS. */
export const load = (
  config: Config,
  listener: TlsListener
): Effect.Effect<ListenerTls, CommandFailed, Entropy | Scope.Scope> =>
  Effect.gen(function*() {
    const { enabled, handshakeTimeoutMillis, settings } = tlsOf(config, listener)
    if (!enabled) return { settings: undefined, notAfter: () => undefined, watch: () => Effect.void }
    const pair = yield* Effect.mapError(TlsFiles.load(settings), filesFailed)
    const scope = yield* Effect.scope
    let { notAfter } = pair
    return {
      settings: { cert: pair.cert, key: pair.key, handshakeTimeoutMillis },
      notAfter: () => notAfter,
      watch: ({ renew }) => {
        const renewing = (former: TlsFiles.TlsPair, next: TlsFiles.TlsPair) =>
          Effect.andThen(renew(former, next), Effect.sync(() => void (notAfter = next.notAfter)))
        return Scope.provide(TlsFiles.watchExpiry(settings, pair, renewing), scope)
      }
    }
  })
