import type { Socket } from "node:net"
import type { Peer } from "../net/Peer.ts"
import { Holdings, peerOf } from "../net/Peer.ts"

const maxPending = 256
const headTimeoutMillis = 10_000

/** A peer did not end its TLS handshake in time. `address` is the peer's, since a socket that was closed has none. */
export class HandshakeLate extends Error {
  readonly code = "ERR_TLS_HANDSHAKE_TIMEOUT"
  readonly address: string | undefined

  constructor(address: string | undefined) {
    super("TLS handshake timeout")
    this.address = address
  }
}

interface Connection {
  readonly socket: Socket
  /** The time limit of its TLS handshake, in milliseconds, until that is over. */
  handshakeMillis: number | undefined
  /** When it was first looked at; a handshake and the head that follows have a time each. */
  since: number | undefined
  /** Ends its count among the connections without a complete head. */
  readonly arrived: () => void
  /** Ends its count among all open connections too. */
  readonly left: () => void
}

/**
 * Counts a listener's connections and keeps them within docs/decisions/process.md, "Bounds of a socket". There are two
 * bounds: on all open connections, and on those that have not yet sent one complete request head (a TLS handshake under
 * way included). At a bound, a new connection takes the place of the newest connection of the peer that has most.
 */
export class Connections {
  readonly #max: number
  readonly #open = new Holdings<Connection>()
  readonly #pending = new Holdings<Connection>()
  readonly #pendingByName = new Map<string, Connection>()
  /**
   * Called with the address of a connection that was closed because there was no room. The callback must bound its own
   * work.
   */
  onRefused: (address: string, open: number, pending: number) => void = () => {}
  /** Called when a connection was accepted. */
  onOpened: () => void = () => {}
  /** The peer whose share pays for a connection from an address; `undefined` if the address stands for many clients. */
  peerOf: (address: string) => Peer | undefined = peerOf

  constructor(max: number) {
    this.#max = max
  }

  /**
   * To be called when a TCP connection was accepted. Returns whether the connection may stay. Under TLS the request's
   * socket is another object, so the connection is found by the peer's address and port.
   */
  opened(socket: Socket): boolean {
    const peer = this.peerOf(socket.remoteAddress ?? "")
    if (!this.#hasRoom(this.#pending, maxPending, peer, socket)) return false
    if (!this.#hasRoom(this.#open, this.#max, peer, socket)) return false
    const name = nameOf(socket)
    const connection: Connection = {
      socket,
      handshakeMillis: undefined,
      since: undefined,
      arrived: () => {
        // The peer may meanwhile have opened another connection from the same port.
        if (this.#pendingByName.get(name) === connection) this.#pendingByName.delete(name)
        leavePending()
      },
      left: () => {
        connection.arrived()
        leaveOpen()
      }
    }
    const leavePending = this.#pending.add(peer, connection)
    const leaveOpen = this.#open.add(peer, connection)
    this.#pendingByName.set(name, connection)
    socket.once("close", connection.left)
    this.onOpened()
    return true
  }

  /** Whether there is room for one more connection. Another connection may be closed to make room. */
  #hasRoom(among: Holdings<Connection>, most: number, peer: Peer | undefined, newcomer: Socket): boolean {
    if (among.size < most) return true
    const victim = among.victimOf(peer)
    const { remoteAddress } = victim?.socket ?? newcomer
    this.onRefused(remoteAddress ?? "", this.#open.size, this.#pending.size)
    victim?.left()
    victim?.socket.destroy()
    if (victim === undefined) newcomer.destroy()
    return victim !== undefined
  }

  /** This connection begins with a TLS handshake, which has so much time; the head has its own after that. */
  handshakeBegun(socket: Socket, millis: number): void {
    const connection = this.#pendingByName.get(nameOf(socket))
    if (connection !== undefined) connection.handshakeMillis = millis
  }

  /** The TLS handshake of this connection is over. */
  handshakeDone(socket: Socket): void {
    const connection = this.#pendingByName.get(nameOf(socket))
    if (connection === undefined) return
    connection.handshakeMillis = undefined
    connection.since = undefined
  }

  /** A complete request head arrived on this connection. */
  headSeen(socket: Socket): void {
    this.#pendingByName.get(nameOf(socket))?.arrived()
  }

  /**
   * Closes connections that have sent no complete head yet. An HTTP server does not know of TLS handshakes under way.
   */
  closePending(): void {
    for (const { socket } of this.#pendingByName.values()) socket.destroy()
  }

  /** How many connections have sent no complete head yet. */
  get pending(): number {
    return this.#pendingByName.size
  }

  /**
   * Closes connections whose TLS handshake has taken longer than it may, with {@link HandshakeLate}, and those that have
   * sent no complete head for ten seconds. Both times begin when a connection is first looked at.
   */
  expire(now: number): void {
    for (const connection of this.#pendingByName.values()) {
      const { handshakeMillis, socket } = connection
      connection.since ??= now
      if (now - connection.since < (handshakeMillis ?? headTimeoutMillis)) continue
      // The place is free at once, because the peer may learn of the end, and connect again, before this process does.
      connection.left()
      socket.destroy(handshakeMillis === undefined ? undefined : new HandshakeLate(socket.remoteAddress))
    }
  }
}

const lingerMillis = 5000

/**
 * To be called after the last octets to a peer: the peer may go on sending for this long, then the socket is destroyed.
 */
export const linger = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.once("close", () => clearTimeout(timer))
}

const nameOf = (socket: Socket): string => `${socket.remoteAddress ?? ""} ${socket.remotePort ?? ""}`
