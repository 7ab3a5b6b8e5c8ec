import { Context, Effect, Layer } from "effect"
import type * as Net from "node:net"
import { codeOf } from "../host/Exhausted.ts"
import { traced } from "../telemetry/Tracing.ts"
import type { ConnectFailed, ConnectRequest, Dialer } from "./Connect.ts"
import { direct, secure, sni, TlsFailed } from "./Connect.ts"

/** One handshake and where to make it. */
export interface AlpnPeerRequest extends ConnectRequest {
  /** SNI. */
  readonly name: string
  /** The one application protocol offered. */
  readonly protocol: string
}

/** What the other side showed in the handshake. */
export interface AlpnPeerAnswer {
  /** The protocol it chose; `undefined` when it chose none. */
  readonly protocol: string | undefined
  /** Its certificate as DER; `undefined` when it sent none. */
  readonly certificate: Uint8Array | undefined
}

const shake = (socket: Net.Socket, { name, protocol }: AlpnPeerRequest) =>
  Effect.async<AlpnPeerAnswer, TlsFailed>((resume) => {
    const tls = secure(socket, { ALPNProtocols: [protocol], ...sni(name) })
    let shown: AlpnPeerAnswer | undefined
    const settle = (detail: string, code?: string) => {
      resume(shown === undefined ? new TlsFailed({ detail, code }) : Effect.succeed(shown))
      tls.destroy()
    }
    tls.on("error", (cause) => settle(cause.message, codeOf(cause)))
    tls.once("close", () => settle("closed in the handshake"))
    tls.once("secureConnect", () => {
      const chosen = tls.alpnProtocol
      shown = {
        protocol: typeof chosen === "string" ? chosen : undefined,
        certificate: tls.getPeerX509Certificate()?.raw
      }
      // The handshake ends with what this side has yet to send; a server that resets then has still shown its answer.
      tls.end(() => settle("ended"))
    })
    return Effect.sync(() => tls.destroy())
  })

/** The outside world of tls-alpn-01: one TLS handshake over a connection of its own, no session resumed, no data sent. */
export class AlpnPeer extends Context.Tag("acme/kernel/net/AlpnPeer")<AlpnPeer, {
  /** No timeout of its own beyond `connectMillis`; interruption destroys the socket. */
  readonly meet: (request: AlpnPeerRequest) => Effect.Effect<AlpnPeerAnswer, ConnectFailed | TlsFailed>
}>() {
  /** Over sockets. */
  static readonly layer = (dialer: Dialer = direct): Layer.Layer<AlpnPeer> =>
    Layer.succeed(this, {
      meet: (request) =>
        traced(
          "validation handshake",
          () => ({ "server.address": request.name }),
          Effect.scoped(Effect.flatMap(dialer(request, "https", request.name), (socket) => shake(socket, request)))
        )
    })

  /** Answers from a function, which sees every request. */
  static readonly layerScripted = (
    script: (request: AlpnPeerRequest) => Effect.Effect<AlpnPeerAnswer, ConnectFailed | TlsFailed>
  ): Layer.Layer<AlpnPeer> => Layer.succeed(this, { meet: script })
}
