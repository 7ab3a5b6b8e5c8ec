import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { constants } from "node:crypto"
import * as Net from "node:net"
import * as Tls from "node:tls"
import { codeOf } from "../host/Exhausted.ts"
import type { IpAddress } from "./Address.ts"
import { HandshakeSocket } from "./Handshake.ts"

/** What failed, and the system's error code if there is one. */
interface Failure {
  readonly detail: string
  readonly code?: string | undefined
}

/**
 * No TCP connection was made: it was refused, the address is unreachable, or the connection took longer than
 * `connectMillis`. Another address may still work.
 */
export class ConnectFailed extends Data.TaggedError("ConnectFailed")<Failure> {}

/** The TCP connection was established, but the TLS handshake failed. */
export class TlsFailed extends Data.TaggedError("TlsFailed")<Failure> {}

/** The address and port to connect to. The caller has checked the address, and exactly this address is dialled. */
export interface ConnectRequest {
  readonly address: IpAddress
  readonly port: number
  /**
   * The time limit, in ms, until the TCP connection must be established. `undefined` if the caller's own limit
   * suffices.
   */
  readonly connectMillis: number | undefined
}

/** Ignores error events that are already reported in another way. */
export const ignore = () => {}

const dial = ({ address, port }: ConnectRequest): Effect.Effect<Net.Socket, ConnectFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => Net.connect({ host: address, port, noDelay: true }).on("error", ignore)),
    (socket) => Effect.sync(() => socket.destroy())
  ).pipe(Effect.tap((socket) =>
    Effect.callback<void, ConnectFailed>((resume) => {
      const failed = (cause: Error | null) =>
        resume(new ConnectFailed({ detail: cause?.message ?? "closed", code: codeOf(cause) }))
      if (socket.destroyed) return failed(socket.errored)
      if (!socket.connecting) return resume(Effect.void)
      socket.once("connect", () => resume(Effect.void)).once("error", failed)
    })
  ))

/**
 * Opens a TCP connection to a literal address, so that no name is looked up. The connection is destroyed when the scope
 * closes.
 */
export const connect = (request: ConnectRequest): Effect.Effect<Net.Socket, ConnectFailed, Scope.Scope> =>
  request.connectMillis === undefined ? dial(request) : dial(request).pipe(Effect.timeoutOrElse({
    duration: request.connectMillis,
    orElse: () => Effect.fail(new ConnectFailed({ detail: `no connection within ${request.connectMillis} ms` }))
  }))

/**
 * Makes a connection to an address that the caller has checked. The scheme and the name are those of the requested
 * resource.
 */
export type Dialer = (
  request: ConnectRequest,
  scheme: "http" | "https",
  name: string
) => Effect.Effect<Net.Socket, ConnectFailed, Scope.Scope>

/** Connects directly to the address. */
export const direct: Dialer = (request) => connect(request)

/** SNI may contain only names, without the root dot (RFC 6066 section 3). */
const serverName = (host: string): string | undefined => {
  const name = host.replace(/:[0-9]+$/, "").replace(/\.$/, "")
  return name.startsWith("[") || Net.isIP(name) !== 0 ? undefined : name
}

// The other side chooses the finite-field group. With a large group, the computation would block this thread for a
// second.
const ciphers = `${Tls.DEFAULT_CIPHERS}:!DHE`
const ecdhCurve = "X25519:P-256:P-384:P-521"

/**
 * Starts TLS 1.2 or later over a connection. Any certificate is accepted, so the caller must check it. If the
 * connection is already closed, this fails at once, because TLS over such a connection would never report the failure.
 */
export const secure = (
  socket: Net.Socket,
  options: Pick<Tls.ConnectionOptions, "servername" | "ALPNProtocols">
): Tls.TLSSocket => {
  const bounded = new HandshakeSocket(socket)
  // After a renegotiation, the peer could present a different certificate chain.
  const secureOptions = constants.SSL_OP_NO_RENEGOTIATION
  const fixed = {
    socket: bounded,
    minVersion: "TLSv1.2",
    rejectUnauthorized: false,
    ciphers,
    ecdhCurve,
    secureOptions
  } as const
  const tls = Tls.connect({ ...fixed, ...options }).once("secureConnect", bounded.over)
  if (socket.destroyed) tls.destroy(socket.errored ?? new Error("closed before the handshake"))
  return tls
}

/** Returns the SNI option if the host is a name. */
export const sni = (host: string): Pick<Tls.ConnectionOptions, "servername"> => {
  const servername = serverName(host)
  return servername === undefined ? {} : { servername }
}
