import { Data, Effect } from "effect"
import type { Scope } from "effect"
import * as Net from "node:net"
import type { IpAddress } from "../../domain/Address.ts"

/** No TCP connection: refused, unreachable, or not within `connectMillis`. Another address may still do. */
export class ConnectFailed extends Data.TaggedError("ConnectFailed")<{ readonly detail: string }> {}

/** The connection stood, but no TLS session came of it. */
export class TlsFailed extends Data.TaggedError("TlsFailed")<{ readonly detail: string }> {}

/** Where to connect. The address has been checked by the caller and is the one dialled. */
export interface ConnectRequest {
  readonly address: IpAddress
  readonly port: number
  /** Bound of establishing the TCP connection, in ms; `undefined` where the caller's own bound suffices. */
  readonly connectMillis: number | undefined
}

/** A listener for errors that are told of in another way. */
export const ignore = () => {}

const dial = ({ address, port }: ConnectRequest): Effect.Effect<Net.Socket, ConnectFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => Net.connect({ host: address, port, noDelay: true }).on("error", ignore)),
    (socket) => Effect.sync(() => socket.destroy())
  ).pipe(Effect.tap((socket) =>
    Effect.async<void, ConnectFailed>((resume) => {
      const failed = (cause: Error | null) => resume(new ConnectFailed({ detail: cause?.message ?? "closed" }))
      if (socket.destroyed) return failed(socket.errored)
      if (!socket.connecting) return resume(Effect.void)
      socket.once("connect", () => resume(Effect.void)).once("error", failed)
    })
  ))

/** A TCP connection to a literal address, so that nothing is looked up; destroyed with the scope. */
export const connect = (request: ConnectRequest): Effect.Effect<Net.Socket, ConnectFailed, Scope.Scope> =>
  request.connectMillis === undefined ? dial(request) : dial(request).pipe(Effect.timeoutFail({
    duration: request.connectMillis,
    onTimeout: () => new ConnectFailed({ detail: `no connection within ${request.connectMillis} ms` })
  }))

/** SNI carries names only, without the root dot (RFC 6066 §3). */
export const serverName = (host: string): string | undefined => {
  const name = host.replace(/:[0-9]+$/, "").replace(/\.$/, "")
  return name.startsWith("[") || Net.isIP(name) !== 0 ? undefined : name
}
