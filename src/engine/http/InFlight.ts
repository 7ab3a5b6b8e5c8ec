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
 * How many requests of one connection are kept, including the one that is handled. Each of them holds a few kilobytes,
 * and the waiting ones have no slot yet.
 */
const mostOfConnection = 16

/** A request whose answer the peer has not taken in full. */
export interface InFlight {
  readonly socket: Socket
  readonly message: IncomingMessage
  readonly response: ServerResponse
  /** The server of its connection. */
  readonly server: Server
  /**
   * When the time of its handler ends or, once the answer is handed over, the time of the peer; in epoch milliseconds.
   */
  endsAt: number
  /** How many milliseconds the peer has to take what was handed over last; 0 before that. */
  patience: number
  /** Starts its handler when its turn comes. */
  readonly handle: (one: InFlight) => Fiber.Fiber<void>
  /** Whether its handler was started. */
  isBegun: boolean
  /** Its handler, while that runs. */
  fiber: Fiber.Fiber<void> | undefined
  /** Why its handler was interrupted or, if it has not started yet, why it has nothing to do. */
  ending: "late" | "gone" | "cut" | undefined
}

/**
 * Gives the peer time to take the octets that were handed over: the time of a request, and a second more for each 8
 * KiB.
 */
export const handedOver = (one: InFlight, now: number, requestTimeoutMillis: number): void => {
  one.patience = requestTimeoutMillis + one.response.writableLength * 1000 / slowestPeer
  one.endsAt = now + one.patience
}

/** Whether a connection can take another answer. */
const canBeAnswered = (socket: Socket): boolean => !socket.destroyed && !socket.writableEnded

/** Ends a handler early; the first reason counts. */
const interrupt = (one: InFlight, ending: InFlight["ending"]): void => {
  if (one.ending !== undefined) return
  one.ending = ending
  one.fiber?.interruptUnsafe()
}

/** The requests of one connection in the order of their arrival. The first is handled, the others wait. */
interface OfConnection {
  readonly requests: Set<InFlight>
  /** Runs when they are over. Whatever arrives after it is not a request any more. */
  last: (() => void) | undefined
}

/**
 * The requests of a listener whose answers have not been taken in full, by connection. A large answer is still being
 * sent long after its handler is done. Until the peer has taken it, the request counts as in flight, so that shutting
 * down the listener does not cut it off, and a peer that takes nothing is noticed. A connection's next request begins
 * when the one before is over, so a client that does not read its answers costs the work and the memory of one.
 */
export class RequestsInFlight {
  readonly #all = new Set<InFlight>()
  /** Every open connection that has sent a request. */
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
   * Takes a new request; `handle` starts its handler when the earlier ones are over. Answers `false` if too many
   * requests of the connection wait. Then the request is dropped, and the caller ends the connection.
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
   * Runs `last` when the requests of a connection are over. It runs at once if there are none, or if the input belongs
   * to the body of the request that is being handled. A waiting request whose body has not arrived in full is dropped.
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

  /** Begins a request when its turn comes, unless it is over by then. */
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

  /**
   * Ends requests that can no longer be answered. Handlers that have not started are started all the same, so that they
   * record the end.
   */
  #abandon({ requests }: OfConnection): void {
    for (const one of requests) {
      interrupt(one, "gone")
      if (!one.isBegun) this.#begin(one)
      else if (one.fiber === undefined) this.#over(one)
    }
  }

  /**
   * Ends requests that have no time left. A handler is interrupted and answers that it is late; a peer that has not
   * taken its answer is cut off.
   */
  expire(now: number): void {
    for (const one of this.#all) {
      if (one.endsAt > now) continue
      if (one.fiber === undefined) one.socket.destroy()
      else interrupt(one, "late")
    }
  }

  /** Ends connections without a request in flight, now and from now on. */
  endIdle(): void {
    this.#isEnding = true
    for (const [socket, { requests }] of this.#connections) {
      // A connection that was ended already stays until its peer has read the answer.
      if (requests.size === 0 && !socket.writableEnded) socket.destroy()
    }
  }

  /** Interrupts all handlers; answers how many requests are in flight. */
  cut(): number {
    for (const one of this.#all) interrupt(one, "cut")
    return this.#all.size
  }

  /** Waits until no request is in flight. */
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
