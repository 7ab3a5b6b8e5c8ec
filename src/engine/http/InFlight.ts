import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Peer } from "../net/Peer.ts"
import { peerOf } from "../net/Peer.ts"
import { Turns } from "../net/Turns.ts"
import type { Target } from "./Head.ts"

/**
 * How many connections are accepted before requests have a turn, and how many requests begin in one turn. If only one
 * peer asks, all of them may be its own, so that they share a commit.
 */
const mostInTurn = 64

/**
 * Makes the process accept connections before it begins requests. In each iteration of the event loop, libuv accepts
 * only one connection, even if many are waiting. If an iteration handled all requests that have arrived, a few busy
 * peers could fill the kernel's queue, and a new client would wait behind a thousand others. So requests wait for an
 * iteration in which no connection is accepted, and then begin together, so that they can share a commit. Neither a
 * connection nor a request waits for more than {@link mostInTurn} of the other kind. If more requests wait than begin in
 * one iteration, peers take the places by turns. So a newcomer begins in the next iteration, however many requests of
 * another host wait.
 */
export class Pace {
  readonly #waiting = new Turns<() => void>()
  #accepted = 0
  #hasAccepted = false
  /** Whether the next iteration looks at what waits. */
  #isAwake = false

  /** Reports that a connection was accepted. */
  accepted(): void {
    this.#hasAccepted = true
  }

  /**
   * Begins a request of a peer when its turn has come. Returns a function that takes the request out of the queue.
   * Otherwise the queue of a peer that sends requests and leaves could grow faster than the peer has turns.
   */
  run(begin: () => void, peer: Peer): () => void {
    this.#waiting.add(peer, begin)
    if (!this.#isAwake) this.#wake()
    return () => this.#waiting.remove(peer, begin)
  }

  #wake(): void {
    this.#isAwake = true
    setImmediate(this.#turn)
  }

  readonly #turn = (): void => {
    const mayWait = this.#hasAccepted && ++this.#accepted < mostInTurn
    this.#hasAccepted = false
    if (mayWait) return this.#wake()
    this.#accepted = 0
    const begins = this.#waiting.take(mostInTurn)
    this.#isAwake = false
    if (this.#waiting.size > 0) this.#wake()
    for (const begin of begins) begin()
  }
}

/** The only instance in the process: all listeners share one event loop. */
export const pace = new Pace()

/** The lowest rate, in octets per second, at which a peer may read its answer. A slower peer is cut off. */
const slowestPeer = 8192

/**
 * The highest number of requests that are kept for one connection, including the request that is being handled. Each
 * request needs a few kilobytes, and the waiting requests have no slot yet.
 */
const mostOfConnection = 16

/** A request that has just arrived. */
export interface Arrived {
  readonly message: IncomingMessage
  readonly response: ServerResponse
  /** The server that handles its connection. */
  readonly server: Server
  readonly target: Target
}

/** A request whose answer the peer has not fully received. */
export interface InFlight extends Arrived {
  readonly socket: Socket
  /**
   * When the time limit of the handler ends, in epoch milliseconds. After the answer was handed over, this is when the
   * time limit of the peer ends.
   */
  endsAt: number
  /**
   * How many milliseconds the peer may take to receive the octets that were handed over last. It is 0 before anything
   * was handed over.
   */
  patience: number
  /** Takes the request out of the queue of requests that have not begun. */
  leave: () => void
  /** Whether the handler has been started. */
  isBegun: boolean
  /** The fiber of the handler, while the handler runs. */
  fiber: Fiber.Fiber<void> | undefined
  /** Why the handler was interrupted. If the handler has not started yet, why it has nothing to do. */
  ending: "late" | "gone" | "cut" | undefined
}

/**
 * Sets the time in which the peer must receive the octets that were handed over: the time limit of a request, plus a
 * second for each 8 KiB.
 */
export const handedOver = (one: InFlight, now: number, requestTimeoutMillis: number): void => {
  one.patience = requestTimeoutMillis + one.response.writableLength * 1000 / slowestPeer
  one.endsAt = now + one.patience
}

/** Returns whether another answer can be sent on a connection. */
const canBeAnswered = (socket: Socket): boolean => !socket.destroyed && !socket.writableEnded

/** Ends a handler early. If there are several reasons, the first one counts. */
const interrupt = (one: InFlight, ending: InFlight["ending"]): void => {
  if (one.ending !== undefined) return
  one.ending = ending
  one.fiber?.interruptUnsafe()
}

/**
 * The requests of one connection, in the order in which they arrived. The first is being handled, and the others wait.
 */
interface OfConnection {
  readonly requests: Set<InFlight>
  /** Runs when all requests are over. Input that arrives after that is no longer treated as a request. */
  last: (() => void) | undefined
}

/**
 * The requests of a listener whose answers have not been fully received, by connection. A large answer is still being
 * sent long after its handler has ended. Until the peer has received the whole answer, the request counts as in flight.
 * So the answer is not cut off when the listener shuts down, and a peer that reads nothing is noticed. The next request
 * of a connection begins when the previous request is over. So a client that does not read its answers costs the work
 * and memory of only one request.
 */
export class RequestsInFlight {
  readonly #all = new Set<InFlight>()
  /** Every open connection that has sent a request. */
  readonly #connections = new Map<Socket, OfConnection>()
  #isEnding = false
  #whenNone: Deferred.Deferred<void> | undefined
  /** Starts the handler of a request. The listener sets this function before the first request arrives. */
  handle: (one: InFlight) => Fiber.Fiber<void> | undefined = () => undefined
  /** Returns the peer among whose requests a request waits until it begins. The listener sets this function too. */
  peerOf: (one: Arrived) => Peer = ({ message }) => peerOf(message.socket.remoteAddress ?? "")

  get size(): number {
    return this.#all.size
  }

  /** Returns whether a request of this connection is in flight. */
  isOn(socket: Socket): boolean {
    return (this.#connections.get(socket)?.requests.size ?? 0) > 0
  }

  /**
   * Adds a new request. Its handler starts when the earlier requests are over. Returns `false` if too many requests of
   * the connection are waiting. In that case the request is dropped, and the caller must end the connection.
   */
  come(arrived: Arrived): boolean {
    const { socket } = arrived.message
    const own = this.#of(socket)
    if (!canBeAnswered(socket) || own.last !== undefined) return true
    if (own.requests.size >= mostOfConnection) return false
    const one: InFlight = {
      ...arrived,
      socket,
      endsAt: Number.POSITIVE_INFINITY,
      patience: 0,
      leave: () => {},
      isBegun: false,
      fiber: undefined,
      ending: undefined
    }
    this.#all.add(one)
    own.requests.add(one)
    if (own.requests.size === 1) this.#wait(one)
    return true
  }

  /**
   * Runs `last` when the requests of a connection are over. `last` runs at once if there are no requests, or if the
   * input belongs to the body of the request that is being handled. A waiting request is dropped if its body has not
   * arrived in full.
   */
  afterAll(socket: Socket, last: () => void): void {
    const own = this.#of(socket)
    if (own.last !== undefined) return
    own.last = last
    const newest = [...own.requests].at(-1)
    if (newest !== undefined && !newest.message.complete) {
      if (newest.isBegun) return last()
      newest.leave()
      own.requests.delete(newest)
      this.#all.delete(newest)
    }
    if (own.requests.size === 0) last()
  }

  /** Begins a request when its turn has come. */
  #wait(one: InFlight): void {
    one.leave = pace.run(() => this.#begin(one), this.peerOf(one))
  }

  /** Begins a request, unless it has already begun or is over. */
  #begin(one: InFlight): void {
    if (one.isBegun || !this.#all.has(one)) return
    const { response, socket } = one
    one.isBegun = true
    response.once("close", () => {
      if (!response.writableFinished) interrupt(one, "gone")
      if (one.fiber === undefined) this.#over(one)
    })
    one.fiber = this.handle(one)
    one.fiber?.addObserver(() => {
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
   * Ends requests that can no longer be answered. A handler that has not started is still started, so that it logs the
   * end.
   */
  #abandon({ requests }: OfConnection): void {
    for (const one of requests) {
      interrupt(one, "gone")
      if (!one.isBegun) {
        one.leave()
        this.#begin(one)
      } else if (one.fiber === undefined) this.#over(one)
    }
  }

  /**
   * Ends requests whose time is up. A handler is interrupted, and then sends the answer for a late request. A peer that
   * has not received its answer is cut off.
   */
  expire(now: number): void {
    for (const one of this.#all) {
      if (one.endsAt > now) continue
      if (one.fiber === undefined) one.socket.destroy()
      else interrupt(one, "late")
    }
  }

  /** From now on, ends each connection after its next answer, unless more requests wait on it. */
  endAnswered(): void {
    this.#isEnding = true
  }

  /** Ends the connections that have no request in flight, both now and later. */
  endIdle(): void {
    this.#isEnding = true
    for (const [socket, { requests }] of this.#connections) {
      // A connection that has already been ended stays until its peer has read the answer.
      if (requests.size === 0 && !socket.writableEnded) socket.destroy()
    }
  }

  /** Interrupts all handlers. Returns how many requests are in flight. */
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
      else if (next !== undefined) this.#wait(next)
      else if (own.last !== undefined) own.last()
      else if (this.#isEnding) one.socket.destroySoon()
    }
    if (this.#all.size > 0 || this.#whenNone === undefined) return
    Deferred.doneUnsafe(this.#whenNone, Exit.void)
    this.#whenNone = undefined
  }
}
