import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TlsSettings } from "../kernel/http/BoundSocket.ts"
import * as TlsFiles from "../kernel/http/TlsFiles.ts"
import type { Loops } from "../kernel/Loops.ts"
import type { Entropy } from "../pki/Entropy.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { CommandFailed } from "./CommandFailed.ts"
import { filesFailed } from "./CommandFailed.ts"

/* TLS of the listeners that may have it. */

/** Whether a listener uses TLS, and where its key and certificate are. */
export const tlsOf = (config: Config, listener: TlsFiles.TlsFileSettings["listener"]) => {
  const { base_url, tls: { cert_path, enabled, handshake_timeout_ms, key_path } } = listener === "acme"
    ? config.server
    : config.admin
  const settings: TlsFiles.TlsFileSettings = { listener, cert_path, key_path, host: new URL(base_url).hostname }
  return { enabled, handshakeTimeoutMillis: handshake_timeout_ms, settings }
}

/** The TLS settings of a listener, if it uses TLS. Its certificate's expiry is watched as long as the scope lives. */
export const load = (
  config: Config,
  listener: TlsFiles.TlsFileSettings["listener"]
): Effect.Effect<TlsSettings | undefined, CommandFailed, Entropy | Loops | Scope.Scope> =>
  Effect.gen(function*() {
    const { enabled, handshakeTimeoutMillis, settings } = tlsOf(config, listener)
    if (!enabled) return undefined
    const { cert, key, notAfter } = yield* Effect.mapError(TlsFiles.load(settings), filesFailed)
    yield* TlsFiles.watchExpiry(listener, notAfter)
    return { cert, key, handshakeTimeoutMillis }
  })
