import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** A peer that takes its answer more slowly than this, in octets a second, is cut off. */
const slowestPeer = 8192

/** A request whose answer the peer has not taken whole. */
export interface InFlight {
  readonly socket: Socket
  readonly response: ServerResponse
  /** The server of its connection. */
  readonly server: Server
  /** When the time of its handler is over or, once the answer is handed over, that of the peer; in epoch milliseconds. */
  endsAt: number
  /** How many milliseconds the peer has for what was handed over last; 0 before. */
  patience: number
  /** Its handler, while that runs. */
  fiber: Fiber.Fiber<void> | undefined
  /** Why its handler was interrupted, if it was. */
  ending: "late" | "gone" | "cut" | undefined
}

/** Octets were handed over: the peer has the time of a request for them, and a second more for each 8 KiB. */
export const handedOver = (one: InFlight, now: number, requestTimeoutMillis: number): void => {
  one.patience = requestTimeoutMillis + one.response.writableLength * 1000 / slowestPeer
  one.endsAt = now + one.patience
}

/** Ends a handler early; the first reason counts. */
const interrupt = (one: InFlight, ending: InFlight["ending"]): void => {
  if (one.ending !== undefined) return
  one.ending = ending
  one.fiber?.interruptUnsafe()
}

/**
 * The requests of a listener whose answers have not been taken whole, by their connections. A handler is done long before the
 * last octet of a large answer has left: until then its request is in flight, so that no end of a listener cuts it, and so that
 * a peer that takes nothing is found.
 */
export class RequestsInFlight {
  readonly #all = new Set<InFlight>()
  /** Every open connection that has had a request. */
  readonly #connections = new Map<Socket, Set<InFlight>>()
  #isEnding = false
  #whenNone: Deferred.Deferred<void> | undefined

  get size(): number {
    return this.#all.size
  }

  /** Whether a request of this connection is in flight. */
  isOn(socket: Socket): boolean {
    return (this.#connections.get(socket)?.size ?? 0) > 0
  }

  /** A request has begun; `handle` starts its handler. */
  begin(
    { socket }: IncomingMessage,
    response: ServerResponse,
    server: Server,
    handle: (one: InFlight) => Fiber.Fiber<void>
  ): void {
    const one: InFlight = {
      socket,
      response,
      server,
      endsAt: Number.POSITIVE_INFINITY,
      patience: 0,
      fiber: undefined,
      ending: undefined
    }
    this.#all.add(one)
    this.#of(socket).add(one)
    response.once("close", () => {
      if (!response.writableFinished) interrupt(one, "gone")
      if (one.fiber === undefined) this.#over(one)
    })
    const fiber = handle(one)
    one.fiber = fiber
    fiber.addObserver(() => {
      one.fiber = undefined
      if (response.writableFinished || response.destroyed || socket.destroyed) this.#over(one)
    })
  }

  #of(socket: Socket): Set<InFlight> {
    const before = this.#connections.get(socket)
    if (before !== undefined) return before
    const requests = new Set<InFlight>()
    this.#connections.set(socket, requests)
    // Node.js tells the answers of a connection of its end, but after CONNECT not those that wait for the one before.
    socket.once("close", () => {
      this.#connections.delete(socket)
      for (const one of requests) {
        interrupt(one, "gone")
        if (one.fiber === undefined) this.#over(one)
      }
    })
    return requests
  }

  /** Ends what has no time left: a handler answers that it is late, and a peer that has not taken its answer is cut off. */
  expire(now: number): void {
    for (const one of this.#all) {
      // The time for an answer that waits for the one before it has not begun.
      if (one.response.socket === null && one.patience > 0) one.endsAt = now + one.patience
      else if (one.endsAt > now) continue
      else if (one.fiber === undefined) one.socket.destroy()
      else interrupt(one, "late")
    }
  }

  /** Ends the connections that have no request in flight, and from now on each as soon as it has none. */
  endIdle(): void {
    this.#isEnding = true
    for (const [socket, requests] of this.#connections) {
      // One that was ended waits until its peer has read the answer and ends it too.
      if (requests.size === 0 && !socket.writableEnded) socket.destroy()
    }
  }

  /** Interrupts all handlers; answers how many requests are in flight. */
  cut(): number {
    for (const one of this.#all) interrupt(one, "cut")
    return this.#all.size
  }

  /** Waits until none is in flight. */
  readonly none: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#all.size === 0) return Effect.void
    this.#whenNone ??= Deferred.makeUnsafe()
    return Deferred.await(this.#whenNone)
  })

  #over(one: InFlight): void {
    if (!this.#all.delete(one)) return
    const others = this.#connections.get(one.socket)
    others?.delete(one)
    if (this.#isEnding && others?.size === 0) one.socket.destroySoon()
    if (this.#all.size > 0 || this.#whenNone === undefined) return
    Deferred.doneUnsafe(this.#whenNone, Exit.void)
    this.#whenNone = undefined
  }
}
