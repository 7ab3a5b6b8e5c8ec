import { Effect } from "effect"
import type { Scope } from "effect"
import { once } from "node:events"
import type { AddressInfo } from "node:net"
import type { TlsOptions, TLSSocket } from "node:tls"
import { createServer } from "node:tls"

/** A receiver of syslog over TLS on loopback. */
export interface SyslogServer {
  readonly port: number
  /** Every message of the connections that were ended in order, without its length. */
  readonly messages: ReadonlyArray<string>
  /** How many connections were made. */
  readonly connections: () => number
}

/** Splits octet-counted frames (RFC 5425 section 4.3). Throws if a frame is not whole. */
export const unframed = (octets: Buffer): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (let at = 0; at < octets.length;) {
    const space = octets.indexOf(0x20, at)
    const digits = octets.toString("latin1", at, space)
    if (space < 0 || !/^[1-9]\d*$/.test(digits)) throw new Error(`no length at ${at}`)
    const end = space + 1 + Number(digits)
    if (end > octets.length) throw new Error(`the frame at ${at} is cut off`)
    found.push(octets.toString("utf8", space + 1, end))
    at = end
  }
  return found
}

/** What a receiver does with a new connection instead of reading it to its end. */
export type Misbehaviour = (socket: TLSSocket) => void

/** Starts a receiver. `misbehave` returns what to do with the connection of this number, or undefined to read it. */
export const syslogServer = (
  options: TlsOptions,
  misbehave: (connection: number) => Misbehaviour | undefined = () => undefined
): Effect.Effect<SyslogServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const messages: Array<string> = []
      const open = new Set<TLSSocket>()
      let connections = 0
      // As a real receiver, this one keeps its half open until it has read everything.
      const server = createServer({ ...options, allowHalfOpen: true } as TlsOptions, (socket) => {
        open.add(socket)
        socket.on("error", () => {}).once("close", () => open.delete(socket))
        const other = misbehave(connections++)
        if (other !== undefined) return other(socket)
        const chunks: Array<Buffer> = []
        socket.on("data", (chunk: Buffer) => chunks.push(chunk))
        socket.once("end", () => {
          messages.push(...unframed(Buffer.concat(chunks)))
          socket.end()
        })
      })
      server.on("tlsClientError", () => {})
      server.listen(0, "127.0.0.1")
      await once(server, "listening")
      const { port } = server.address() as AddressInfo
      return { server, open, found: { port, messages, connections: () => connections } }
    }),
    ({ open, server }) =>
      Effect.sync(() => {
        for (const socket of open) socket.destroy()
        server.close()
      })
  ).pipe(Effect.map(({ found }) => found))
