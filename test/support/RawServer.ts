import { Effect } from "effect"
import type { Scope } from "effect"
import { once } from "node:events"
import type { AddressInfo, Server, Socket } from "node:net"
import { createServer } from "node:net"
import * as Tls from "node:tls"
import { pending } from "./Pending.ts"

/** A server on a loopback address that sends and receives raw bytes. */
export interface RawServer {
  readonly port: number
  /** The text that each connection has sent, in the order of the connections. */
  readonly received: Array<string>
  /** The server names of TLS clients, or `false` if none was sent. */
  readonly serverNames: Array<string | false>
  /** Resolves once a connection has sent the end of a request head. */
  readonly asked: Promise<void>
  /** Resolves once an open connection has closed. */
  readonly closed: Promise<void>
}

/**
 * Starts a server that calls `reply` once a connection has sent a whole request head. With `tls`, the server speaks TLS
 * with these options.
 */
export const rawServer = (
  reply: (socket: Socket, head: string) => void,
  options: {
    readonly host?: string
    readonly port?: number
    readonly tls?: Tls.TlsOptions
    /** A text that is sent as soon as a connection is accepted. */
    readonly greeting?: string
  } = {}
): Effect.Effect<RawServer, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const [asked, closed] = [pending(), pending()]
        const open = new Set<Socket>()
        const received: Array<string> = []
        const serverNames: Array<string | false> = []
        const handle = (socket: Socket) => {
          const at = received.push("") - 1
          if (socket instanceof Tls.TLSSocket) serverNames.push(socket.servername ?? false)
          open.add(socket)
          if (options.greeting !== undefined) socket.write(options.greeting)
          socket.on("error", () => socket.destroy())
          socket.on("close", () => {
            open.delete(socket)
            closed.resolve()
          })
          socket.on("data", (chunk) => {
            received[at] += chunk.toString("latin1")
            if (!received[at]?.includes("\r\n\r\n")) return
            asked.resolve()
            reply(socket, received[at] ?? "")
          })
        }
        const server: Server = options.tls === undefined ? createServer(handle) : Tls.createServer(options.tls, handle)
        server.on("tlsClientError", () => {})
        server.listen(options.port ?? 0, options.host ?? "127.0.0.1")
        await once(server, "listening")
        const { port } = server.address() as AddressInfo
        const facts: RawServer = { port, received, serverNames, asked: asked.promise, closed: closed.promise }
        return { server, open, facts }
      }),
      ({ open, server }) =>
        Effect.promise(async () => {
          const done = once(server, "close")
          server.close()
          for (const socket of open) socket.destroy()
          await done
        })
    ),
    ({ facts }) => facts
  )

/** The key and the certificate of other.example, which was valid only on the first of January 2020. */
export const expired = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg5RdxIRxzdVC5e0nP
J+wRfOSdAqW5qMfnHd8HTTmVyk+hRANCAATkqVYYiiBV96JCAsCxCiOxhC1aM95/
M3EkVOpuKRJVgNablQDMEQ2Q2Wnugnwb0sEAXgH76UM321XU3N2719jM
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBFjCBvgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1vdGhlci5leGFtcGxl
MB4XDTIwMDEwMTAwMDAwMFoXDTIwMDEwMjAwMDAwMFowGDEWMBQGA1UEAwwNb3Ro
ZXIuZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOSpVhiKIFX3okIC
wLEKI7GELVoz3n8zcSRU6m4pElWA1puVAMwRDZDZae6CfBvSwQBeAfvpQzfbVdTc
3bvX2MwwCgYIKoZIzj0EAwIDRwAwRAIgEv0S6wmCiHRlfRTETVVuSIUrnb7l2qiv
2N0z4M7sDugCIHDAzGJbbK5rfoh6StYUFh7Yan9KoVKKv1/th2wno2xs
-----END CERTIFICATE-----`
}
