import { Effect } from "effect"
import type { Scope } from "effect"
import { once } from "node:events"
import type { Server } from "node:http"
import type { AddressInfo, Server as SocketServer } from "node:net"

/** Returns the port of 127.0.0.1 at which a server listens until the scope ends. */
export const listening = (server: SocketServer): Effect.Effect<number, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      return (server.address() as AddressInfo).port
    }),
    () =>
      Effect.sync(() => {
        if ("closeAllConnections" in server) (server as Server).closeAllConnections()
        server.close()
      })
  )
