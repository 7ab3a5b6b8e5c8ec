import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Net from "node:net"
import type { HostPort } from "../net/SocketAddress.ts"

/** Nothing can listen at an address now. `code` is the system's error code. */
export class PortRefused extends Data.TaggedError("PortRefused")<{ readonly code: string; readonly detail: string }> {}

/** Listens at an address and closes at once. In the meantime nothing is served: any connection is closed. */
export const tryPort = ({ host, port }: HostPort): Effect.Effect<void, PortRefused> =>
  Effect.callback((resume) => {
    const server = Net.createServer((socket) => void socket.destroy())
    server.once("error", ({ code = "", message }: NodeJS.ErrnoException) =>
      resume(Effect.fail(new PortRefused({ code, detail: message }))))
    server.listen({ host, port, exclusive: true }, () =>
      void server.close(() => resume(Effect.void)))
    return Effect.sync(() => void server.close())
  })
