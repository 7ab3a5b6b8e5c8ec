import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Net from "node:net"
import { codeOf } from "../host/Exhausted.ts"
import { traced } from "../telemetry/Tracing.ts"
import type { ConnectFailed, ConnectRequest, Dialer } from "./Connect.ts"
import { direct, secure, sni, TlsFailed } from "./Connect.ts"

/** One handshake, and the address to connect to. */
export interface AlpnPeerRequest extends ConnectRequest {
  /** The name that is sent as SNI. */
  readonly name: string
  /** The only application protocol that is offered. */
  readonly protocol: string
}

/** What the peer presented in the handshake. */
export interface AlpnPeerAnswer {
  /** The protocol that the peer chose, or `undefined` if it chose none. */
  readonly protocol: string | undefined
  /** The certificate of the peer as DER, or `undefined` if the peer sent none. */
  readonly certificate: Uint8Array | undefined
}

const shake = (socket: Net.Socket, { name, protocol }: AlpnPeerRequest) =>
  Effect.callback<AlpnPeerAnswer, TlsFailed>((resume) => {
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
      // This side still has to send the last part of the handshake. If a server resets the connection at this point,
      // the server has already presented its certificate.
      tls.end(() => settle("ended"))
    })
    return Effect.sync(() => tls.destroy())
  })

/** Makes one TLS handshake with a server over a new connection, without session resumption and without data. */
export class AlpnPeer extends Context.Service<AlpnPeer, {
  /** Makes the handshake. The only timeout is `connectMillis`. An interruption destroys the socket. */
  readonly meet: (request: AlpnPeerRequest) => Effect.Effect<AlpnPeerAnswer, ConnectFailed | TlsFailed>
}>()("acme/engine/net/AlpnPeer") {
  /** Uses real sockets. */
  static readonly layer = (dialer: Dialer = direct): Layer.Layer<AlpnPeer> =>
    Layer.succeed(this, {
      meet: (request) =>
        traced(
          "TLS handshake",
          () => ({ "server.address": request.name }),
          Effect.scoped(Effect.flatMap(dialer(request, "https", request.name), (socket) => shake(socket, request)))
        )
    })

  /** Opens no socket. A function returns the answer to every request. */
  static readonly layerScripted = (
    script: (request: AlpnPeerRequest) => Effect.Effect<AlpnPeerAnswer, ConnectFailed | TlsFailed>
  ): Layer.Layer<AlpnPeer> => Layer.succeed(this, { meet: script })
}
