import type { Socket } from "node:net"

const maxPending = 256
const headTimeoutMillis = 10_000

/**
 * Counts a listener's connections and closes those beyond the bounds of `process.md`: all that are open, and those that
 * have not yet sent one complete request head (a TLS handshake under way included).
 */
export class Connections {
  readonly #max: number
  #open = 0
  readonly #pending = new Map<string, { readonly socket: Socket; since: number | undefined }>()
  /** Called for a connection closed at once; bounded by the caller. */
  onRefused: (open: number, pending: number) => void = () => {}

  constructor(max: number) {
    this.#max = max
  }

  /**
   * A TCP connection was accepted; answers whether it may stay. Under TLS the request's socket is another object, so the
   * peer's port names it.
   */
  opened(socket: Socket): boolean {
    if (this.#open >= this.#max || this.#pending.size >= maxPending) {
      socket.destroy()
      this.onRefused(this.#open, this.#pending.size)
      return false
    }
    const name = nameOf(socket)
    this.#open++
    this.#pending.set(name, { socket, since: undefined })
    socket.once("close", () => {
      this.#open--
      this.#pending.delete(name)
    })
    return true
  }

  /** A complete request head arrived on this connection. */
  headSeen(socket: Socket): void {
    this.#pending.delete(nameOf(socket))
  }

  /** Closes connections that have sent no complete head yet: a server knows nothing of a TLS handshake under way. */
  closePending(): void {
    for (const { socket } of this.#pending.values()) socket.destroy()
  }

  /** Closes connections that have sent no complete head for ten seconds since they were first looked at. */
  expire(now: number): void {
    for (const entry of this.#pending.values()) {
      entry.since ??= now
      if (now - entry.since >= headTimeoutMillis) entry.socket.destroy()
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
