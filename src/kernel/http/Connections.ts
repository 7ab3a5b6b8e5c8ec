import type { Socket } from "node:net"
import type { Peer } from "../net/Peer.ts"
import { peerOf } from "../net/Peer.ts"
import { Shares } from "./Shares.ts"

const maxPending = 256
const headTimeoutMillis = 10_000

interface Connection {
  readonly socket: Socket
  since: number | undefined
  /** Ends its being counted among those that have sent no head, and among all. */
  readonly arrived: () => void
  readonly left: () => void
}

/**
 * Counts a listener's connections and keeps them within docs/decisions/process.md, "Bounds of a socket": all that are open,
 * and those that have not yet sent one complete request head (a TLS handshake under way included). At a bound a newcomer
 * takes the place of the newest connection of whoever has most.
 */
export class Connections {
  readonly #max: number
  readonly #open = new Shares<Connection>()
  readonly #pending = new Shares<Connection>()
  readonly #pendingByName = new Map<string, Connection>()
  /** Called for a connection closed for want of room, which is said to be from this address; bounded by the caller. */
  onRefused: (address: string, open: number, pending: number) => void = () => {}
  /** Whose share a connection from an address is counted in; nobody's where many stand behind it. */
  peerOf: (address: string) => Peer | undefined = peerOf

  constructor(max: number) {
    this.#max = max
  }

  /**
   * A TCP connection was accepted; answers whether it may stay. Under TLS the request's socket is another object, so the
   * peer's port names it.
   */
  opened(socket: Socket): boolean {
    const peer = this.peerOf(socket.remoteAddress ?? "")
    if (!this.#hasRoom(this.#pending, maxPending, peer, socket)) return false
    if (!this.#hasRoom(this.#open, this.#max, peer, socket)) return false
    const name = nameOf(socket)
    const connection: Connection = {
      socket,
      since: undefined,
      arrived: () => {
        this.#pendingByName.delete(name)
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
    return true
  }

  /** Whether there is room for one more, for which another may have been closed. */
  #hasRoom(among: Shares<Connection>, most: number, peer: Peer | undefined, newcomer: Socket): boolean {
    if (among.size < most) return true
    const victim = among.victimOf(peer)
    const { remoteAddress } = victim?.socket ?? newcomer
    this.onRefused(remoteAddress ?? "", this.#open.size, this.#pending.size)
    victim?.left()
    victim?.socket.destroy()
    if (victim === undefined) newcomer.destroy()
    return victim !== undefined
  }

  /** A complete request head arrived on this connection. */
  headSeen(socket: Socket): void {
    this.#pendingByName.get(nameOf(socket))?.arrived()
  }

  /** Closes connections that have sent no complete head yet: a server knows nothing of a TLS handshake under way. */
  closePending(): void {
    for (const { socket } of this.#pendingByName.values()) socket.destroy()
  }

  /** Closes connections that have sent no complete head for ten seconds since they were first looked at. */
  expire(now: number): void {
    for (const connection of this.#pendingByName.values()) {
      connection.since ??= now
      if (now - connection.since >= headTimeoutMillis) connection.socket.destroy()
    }
  }
}

const lingerMillis = 5000

/** After the last octets to a peer have been sent: what it has still to send is given so long, then it is cut off. */
export const linger = (socket: Socket): void => {
  const timer = setTimeout(() => socket.destroy(), lingerMillis)
  socket.once("close", () => clearTimeout(timer))
}

const nameOf = (socket: Socket): string => `${socket.remoteAddress ?? ""} ${socket.remotePort ?? ""}`
