import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Http from "node:http"
import * as Https from "node:https"
import * as Net from "node:net"
import { Connections } from "./Connections.ts"
import { pace } from "./InFlight.ts"

/** A socket could not be bound. */
export class BindFailed extends Data.TaggedError("BindFailed")<{ readonly address: string; readonly detail: string }> {
  override get message(): string {
    return `Cannot listen on ${this.address}: ${this.detail}.`
  }
}

/**
 * Who else accepts connections at an address. `nobody` means no other process. `port` means other processes with
 * sockets of their own, among which the system divides the connections. `socket` means other children of the same
 * parent, from the same socket.
 */
export type Sharing = "nobody" | "port" | "socket"

/** An address at which a socket listens. */
export interface BoundAddress {
  readonly host: string
  readonly port: number
  readonly sharing: Sharing
}

/** A certificate chain and its key in PEM, and the time limit of a handshake. */
export interface TlsSettings {
  readonly cert: string
  readonly key: string
  readonly handshakeTimeoutMillis: number
}

const headTimeoutMillis = 10_000
const longestTimerMillis = 2_147_483_647
const maxHeadBytes = 16_384
const keepAliveMillis = 65_000
const requestsPerConnection = 1000

/** The highest number of header fields in a request. */
export const maxHeaderFields = 100

const makeServer = (tls: TlsSettings | undefined): Http.Server => {
  const settings: Http.ServerOptions = {
    maxHeaderSize: maxHeadBytes,
    headersTimeout: headTimeoutMillis,
    requestTimeout: 0, // the listener enforces the deadlines of the request and of its body
    keepAliveTimeout: keepAliveMillis,
    connectionsCheckingInterval: 1000,
    insecureHTTPParser: false,
    requireHostHeader: false // the listener itself refuses a missing host, like every other malformed request
  }
  const server = tls === undefined ? Http.createServer(settings) : Https.createServer({
    ...settings,
    cert: tls.cert,
    key: tls.key,
    handshakeTimeout: longestTimerMillis, // the listener itself ends slow handshakes, measured with its own clock
    minVersion: "TLSv1.2",
    ALPNProtocols: ["http/1.1"]
  })
  server.maxHeadersCount = maxHeaderFields + 1
  server.maxRequestsPerSocket = requestsPerConnection
  server.emit("listening") // this server never listens, but this event starts its checks for slow and idle connections
  return server
}

/** An HTTP server, and how many of its connections are open. */
interface Speaker {
  readonly tls: TlsSettings | undefined
  readonly server: Http.Server
  open: number
}

const isSame = (one: TlsSettings | undefined, other: TlsSettings | undefined): boolean =>
  one?.cert === other?.cert && one?.key === other?.key && one?.handshakeTimeoutMillis === other?.handshakeTimeoutMillis

const reasons: { readonly [code: string]: string } = {
  EADDRINUSE: "something listens there already, perhaps this service; stop it, or set another address",
  EADDRNOTAVAIL: "no interface of this host has this address",
  EACCES: "this user has no permission; a port under 1024 needs the capability CAP_NET_BIND_SERVICE",
  ENOTFOUND: "the name cannot be looked up on this host",
  ENOTSUP: "this system does not divide connections among processes"
}

const whyNot = ({ code = "", message }: NodeJS.ErrnoException): string => {
  const reason = reasons[code]
  return reason === undefined ? message : `${reason} (${code})`
}

const listening = (
  server: Net.Server,
  { host, port, sharing }: BoundAddress
): Effect.Effect<void, BindFailed> =>
  Effect.callback((resume) => {
    const failed = (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new BindFailed({ address: `${host}:${port}`, detail: whyNot(error) })))
    server.once("error", failed)
    server.listen({ host, port, backlog: 1024, reusePort: sharing === "port" }, () => {
      server.off("error", failed)
      resume(Effect.void)
    })
  })

/**
 * A bound TCP socket. It outlives its HTTP servers: each connection is handled by the server that was in force when the
 * connection was accepted. So TLS can be switched on and off without binding the address again
 * (docs/contribute/decisions/process.md, "Reload").
 */
export class BoundSocket {
  readonly #socket: Net.Server
  readonly #equip: (server: Http.Server) => void
  readonly #speakers = new Set<Speaker>()
  readonly #unspoken = new Set<Net.Socket>()
  #current: Speaker | undefined
  readonly connections: Connections

  /** `equip` is called with each HTTP server before its first connection. From then on, this server is in force. */
  constructor(maxConnections: number, equip: (server: Http.Server) => void) {
    this.connections = new Connections(maxConnections)
    this.#equip = equip
    this.#socket = Net.createServer({ allowHalfOpen: true, noDelay: true }, (connection) => {
      pace.accepted()
      if (!this.connections.opened(connection)) return
      connection.on("error", () => {}) // a waiting connection has no other handler of errors, and closes by itself
      if (this.#current !== undefined) return this.#hand(connection, this.#current)
      this.#unspoken.add(connection)
      connection.once("close", () => this.#unspoken.delete(connection))
    })
  }

  /** Binds the socket until the scope closes. Connections wait until {@link speak} is called. Returns `host:port`. */
  bind(address: BoundAddress): Effect.Effect<string, BindFailed, Scope.Scope> {
    return Effect.acquireRelease(listening(this.#socket, address), () =>
      Effect.callback<void>((resume) => {
        this.#socket.close(() => resume(Effect.void))
        this.cut()
      })).pipe(Effect.map(() => {
        const bound = this.#socket.address() as Net.AddressInfo
        return bound.family === "IPv6" ? `[${bound.address}]:${bound.port}` : `${bound.address}:${bound.port}`
      }))
  }

  /**
   * Sets whether connections that are accepted from now on use TLS. An open connection stays as it is, with or without
   * TLS, and is closed after its next answer.
   */
  speak(tls: TlsSettings | undefined): void {
    const before = this.#current
    if (before !== undefined && isSame(before.tls, tls)) return
    const next: Speaker = { tls, server: makeServer(tls), open: 0 }
    next.server.on("secureConnection", (socket: Net.Socket) => this.connections.handshakeDone(socket))
    this.#equip(next.server)
    this.#current = next
    this.#speakers.add(next)
    if (before?.open === 0) this.#dismiss(before)
    for (const connection of this.#unspoken) this.#hand(connection, next)
    this.#unspoken.clear()
  }

  /** Uses another key and certificate from now on, if `former` is in force. Otherwise does nothing. */
  renew(former: Pick<TlsSettings, "cert" | "key">, { cert, key }: Pick<TlsSettings, "cert" | "key">): void {
    const tls = this.#current?.tls
    if (tls?.cert === former.cert && tls.key === former.key) this.speak({ ...tls, cert, key })
  }

  /** Stops accepting connections. */
  close(): void {
    this.#socket.close()
  }

  /** Ends every connection. */
  cut(): void {
    for (const connection of this.#unspoken) connection.destroy()
    for (const speaker of this.#speakers) {
      speaker.server.closeAllConnections()
      this.#dismiss(speaker)
    }
    this.connections.closePending()
  }

  #hand(connection: Net.Socket, speaker: Speaker): void {
    connection.allowHalfOpen = speaker.tls === undefined
    if (speaker.tls !== undefined) {
      this.connections.handshakeBegun(connection, speaker.tls.handshakeTimeoutMillis)
    }
    speaker.open++
    connection.once("close", () => {
      speaker.open--
      if (speaker.open === 0 && speaker !== this.#current) this.#dismiss(speaker)
    })
    speaker.server.emit("connection", connection)
  }

  #dismiss(speaker: Speaker): void {
    this.#speakers.delete(speaker)
    speaker.server.close() // stops the server's timer
  }
}
