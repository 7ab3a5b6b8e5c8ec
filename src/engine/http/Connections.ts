import * as Effect from "effect/Effect"
import type { Socket } from "node:net"
import type { Peer } from "../net/Peer.ts"
import { Holdings, peerOf } from "../net/Peer.ts"

const maxPending = 256
const headTimeoutMillis = 10_000

/**
 * A peer did not complete its TLS handshake in time. `address` is the address of the peer. It is kept here because a
 * closed socket has no address.
 */
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
  /** The address and port of the connection's peer. */
  readonly name: string
  readonly peer: Peer | undefined
  /** The time limit of the TLS handshake in milliseconds, while the handshake lasts. */
  handshakeMillis: number | undefined
  /**
   * When the connection was first checked. The time of the handshake and the time of the head after it are measured
   * separately.
   */
  since: number | undefined
}

/**
 * Counts the connections of a listener, and limits their number (docs/contribute/decisions/process.md, "Bounds of a
 * socket"). There are two limits. One is for all open connections. The other is for the connections that have not sent
 * a complete request head yet, including those whose TLS handshake is in progress. When a limit is reached, a new
 * connection replaces the newest connection of the peer that has the most connections.
 */
export class Connections {
  readonly #max: number
  readonly #open = new Holdings<Connection>()
  readonly #pending = new Holdings<Connection>()
  readonly #pendingByName = new Map<string, Connection>()
  #whenNone: (() => void) | undefined
  /**
   * Called with the address of a connection that was closed because there was no room. The callback must limit its own
   * work.
   */
  onRefused: (address: string, open: number, pending: number) => void = () => {}
  /** Called when a connection was accepted. */
  onOpened: () => void = () => {}
  /**
   * Returns the peer in whose share a connection from an address is counted, or `undefined` if the address stands for
   * many clients.
   */
  peerOf: (address: string) => Peer | undefined = peerOf

  constructor(max: number) {
    this.#max = max
  }

  /**
   * Must be called when a TCP connection was accepted. Returns whether the connection may stay. With TLS, the socket of
   * a request is a different object, so a connection is found by the address and port of its peer.
   */
  opened(socket: Socket): boolean {
    const peer = this.peerOf(socket.remoteAddress ?? "")
    if (!this.#hasRoom(this.#pending, maxPending, peer, socket)) return false
    if (!this.#hasRoom(this.#open, this.#max, peer, socket)) return false
    const connection: Connection = {
      socket,
      name: nameOf(socket),
      peer,
      handshakeMillis: undefined,
      since: undefined
    }
    this.#pending.add(peer, connection)
    this.#open.add(peer, connection)
    this.#pendingByName.set(connection.name, connection)
    socket.once("close", () => this.#left(connection))
    this.onOpened()
    return true
  }

  /** Stops counting a connection among those without a complete head. */
  #arrived(connection: Connection): void {
    const { name, peer } = connection
    // In the meantime, the peer may have opened another connection from the same port.
    if (this.#pendingByName.get(name) === connection) this.#pendingByName.delete(name)
    this.#pending.remove(peer, connection)
  }

  /** Stops counting a connection among all open connections. */
  #left(connection: Connection): void {
    this.#arrived(connection)
    this.#open.remove(connection.peer, connection)
    if (this.#open.size === 0) this.#whenNone?.()
  }

  /** Waits until no connection is open. */
  readonly none: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.#open.size === 0) return resume(Effect.void)
    this.#whenNone = () => resume(Effect.void)
  })

  /** Returns whether there is room for one more connection. To make room, another connection may be closed. */
  #hasRoom(among: Holdings<Connection>, most: number, peer: Peer | undefined, newcomer: Socket): boolean {
    if (among.size < most) return true
    const victim = among.victimOf(peer)
    const { remoteAddress } = victim?.socket ?? newcomer
    this.onRefused(remoteAddress ?? "", this.#open.size, this.#pending.size)
    if (victim !== undefined) this.#left(victim)
    ;(victim?.socket ?? newcomer).destroy()
    return victim !== undefined
  }

  /**
   * Reports that this connection begins with a TLS handshake, which may take `millis`. The head that follows has a
   * separate time limit.
   */
  handshakeBegun(socket: Socket, millis: number): void {
    const connection = this.#pendingByName.get(nameOf(socket))
    if (connection !== undefined) connection.handshakeMillis = millis
  }

  /** Reports that the TLS handshake of this connection is over. */
  handshakeDone(socket: Socket): void {
    const connection = this.#pendingByName.get(nameOf(socket))
    if (connection === undefined) return
    connection.handshakeMillis = undefined
    connection.since = undefined
  }

  /** Reports that a complete request head arrived on this connection. */
  headSeen(socket: Socket): void {
    const connection = this.#pendingByName.get(nameOf(socket))
    if (connection !== undefined) this.#arrived(connection)
  }

  /**
   * Closes the connections that have not sent a complete head yet. This is done here because an HTTP server does not
   * know about TLS handshakes in progress.
   */
  closePending(): void {
    for (const { socket } of this.#pendingByName.values()) socket.destroy()
  }

  /** The number of connections that have not sent a complete head yet. */
  get pending(): number {
    return this.#pendingByName.size
  }

  /**
   * Closes a connection whose TLS handshake takes too long, with {@link HandshakeLate}. Also closes a connection that
   * has not sent a complete head for ten seconds. Both times are counted from the first check of the connection.
   */
  expire(now: number): void {
    for (const connection of this.#pendingByName.values()) {
      const { handshakeMillis, socket } = connection
      connection.since ??= now
      if (now - connection.since < (handshakeMillis ?? headTimeoutMillis)) continue
      // The place becomes free at once, because the peer may notice the end and connect again before this process
      // notices it.
      this.#left(connection)
      socket.destroy(handshakeMillis === undefined ? undefined : new HandshakeLate(socket.remoteAddress))
    }
  }
}

const lingerMillis = 5000

/**
 * Must be called after the last octets to a peer. The peer may go on sending for a while. Then the socket is destroyed.
 */
export const linger = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.once("close", () => clearTimeout(timer))
}

const nameOf = (socket: Socket): string => `${socket.remoteAddress ?? ""} ${socket.remotePort ?? ""}`
