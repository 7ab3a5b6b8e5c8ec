import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { pace } from "./Pace.ts"

/** A peer that takes its answer more slowly than this, in octets a second, is cut off. */
const slowestPeer = 8192

/**
 * So many requests of one connection are kept, the one that is handled included. Each that waits is a few kilobytes that nobody has answered
 * for yet.
 */
const mostOfConnection = 16

/** A request whose answer the peer has not taken whole. */
export interface InFlight {
  readonly socket: Socket
  readonly message: IncomingMessage
  readonly response: ServerResponse
  /** The server of its connection. */
  readonly server: Server
  /** When the time of its handler is over or, once the answer is handed over, that of the peer; in epoch milliseconds. */
  endsAt: number
  /** How many milliseconds the peer has for what was handed over last; 0 before. */
  patience: number
  /** Starts its handler, when it is its turn. */
  readonly handle: (one: InFlight) => Fiber.Fiber<void>
  /** Whether its handler was started. */
  isBegun: boolean
  /** Its handler, while that runs. */
  fiber: Fiber.Fiber<void> | undefined
  /** Why its handler was interrupted, or has nothing to do when it is started. */
  ending: "late" | "gone" | "cut" | undefined
}

/** Octets were handed over: the peer has the time of a request for them, and a second more for each 8 KiB. */
export const handedOver = (one: InFlight, now: number, requestTimeoutMillis: number): void => {
  one.patience = requestTimeoutMillis + one.response.writableLength * 1000 / slowestPeer
  one.endsAt = now + one.patience
}

/** Whether a connection takes another answer. */
const canBeAnswered = (socket: Socket): boolean => !socket.destroyed && !socket.writableEnded

/** Ends a handler early; the first reason counts. */
const interrupt = (one: InFlight, ending: InFlight["ending"]): void => {
  if (one.ending !== undefined) return
  one.ending = ending
  one.fiber?.interruptUnsafe()
}

/** The requests of one connection, in the order they came: the first is handled, the others wait. */
interface OfConnection {
  readonly requests: Set<InFlight>
  /** What is done when they are over. Nothing that comes after it is a request any more. */
  last: (() => void) | undefined
}

/**
 * The requests of a listener whose answers have not been taken whole, by their connections. A handler is done long before the
 * last octet of a large answer has left: until then its request is in flight, so that no end of a listener cuts it, and so that
 * a peer that takes nothing is found. Of one connection the next request begins when the one before is over, so that whoever takes no
 * answers costs the work and the memory of one.
 */
export class RequestsInFlight {
  readonly #all = new Set<InFlight>()
  /** Every open connection that has had a request. */
  readonly #connections = new Map<Socket, OfConnection>()
  #isEnding = false
  #whenNone: Deferred.Deferred<void> | undefined

  get size(): number {
    return this.#all.size
  }

  /** Whether a request of this connection is in flight. */
  isOn(socket: Socket): boolean {
    return (this.#connections.get(socket)?.requests.size ?? 0) > 0
  }

  /**
   * A request has come; `handle` starts its handler when those before it are over. Answers `false` if its connection has too many that wait:
   * then it is not kept, and its connection is to be ended.
   */
  come(
    message: IncomingMessage,
    response: ServerResponse,
    server: Server,
    handle: InFlight["handle"]
  ): boolean {
    const { socket } = message
    const own = this.#of(socket)
    if (!canBeAnswered(socket) || own.last !== undefined) return true
    if (own.requests.size >= mostOfConnection) return false
    const one: InFlight = {
      socket,
      message,
      response,
      server,
      endsAt: Number.POSITIVE_INFINITY,
      patience: 0,
      handle,
      isBegun: false,
      fiber: undefined,
      ending: undefined
    }
    this.#all.add(one)
    own.requests.add(one)
    if (own.requests.size === 1) this.#await(one)
    return true
  }

  /**
   * Does something when the requests of a connection are over, at once if there are none, or if what came is the rest of the one that is
   * handled. One that waits for its rest is over.
   */
  afterAll(socket: Socket, last: () => void): void {
    const own = this.#of(socket)
    if (own.last !== undefined) return
    own.last = last
    const newest = [...own.requests].at(-1)
    if (newest !== undefined && !newest.message.complete) {
      if (newest.isBegun) return last()
      own.requests.delete(newest)
      this.#all.delete(newest)
    }
    if (own.requests.size === 0) last()
  }

  /** Begins a request in its turn, unless it is over by then. */
  #await(one: InFlight): void {
    pace.run(() => {
      if (this.#all.has(one) && !one.isBegun) this.#begin(one)
    })
  }

  #begin(one: InFlight): void {
    const { response, socket } = one
    one.isBegun = true
    response.once("close", () => {
      if (!response.writableFinished) interrupt(one, "gone")
      if (one.fiber === undefined) this.#over(one)
    })
    const fiber = one.handle(one)
    one.fiber = fiber
    fiber.addObserver(() => {
      one.fiber = undefined
      if (response.writableFinished || response.destroyed || socket.destroyed || one.ending === "gone") this.#over(one)
    })
  }

  #of(socket: Socket): OfConnection {
    const before = this.#connections.get(socket)
    if (before !== undefined) return before
    const own: OfConnection = { requests: new Set(), last: undefined }
    this.#connections.set(socket, own)
    socket.once("close", () => {
      this.#connections.delete(socket)
      this.#abandon(own)
    })
    return own
  }

  /** None of these can be answered any more. The handlers of those that wait are started all the same, to record that. */
  #abandon({ requests }: OfConnection): void {
    for (const one of requests) {
      interrupt(one, "gone")
      if (!one.isBegun) this.#begin(one)
      else if (one.fiber === undefined) this.#over(one)
    }
  }

  /** Ends what has no time left: a handler answers that it is late, and a peer that has not taken its answer is cut off. */
  expire(now: number): void {
    for (const one of this.#all) {
      if (one.endsAt > now) continue
      if (one.fiber === undefined) one.socket.destroy()
      else interrupt(one, "late")
    }
  }

  /** Ends the connections that have no request in flight, and from now on each as soon as it has none. */
  endIdle(): void {
    this.#isEnding = true
    for (const [socket, { requests }] of this.#connections) {
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
    const own = this.#connections.get(one.socket)
    if (own !== undefined) {
      own.requests.delete(one)
      const [next] = own.requests
      if (!canBeAnswered(one.socket)) this.#abandon(own)
      else if (next !== undefined) this.#await(next)
      else if (own.last !== undefined) own.last()
      else if (this.#isEnding) one.socket.destroySoon()
    }
    if (this.#all.size > 0 || this.#whenNone === undefined) return
    Deferred.doneUnsafe(this.#whenNone, Exit.void)
    this.#whenNone = undefined
  }
}
