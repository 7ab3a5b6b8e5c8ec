import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
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
  /** When the time of its handler is over or, once the answer is handed to the socket, that of the peer; in epoch milliseconds. */
  endsAt: number
  /** Its handler, while that runs. */
  fiber: Fiber.RuntimeFiber<void> | undefined
  /** Why its handler was interrupted, if it was. */
  ending: "late" | "gone" | "cut" | undefined
}

/** How many milliseconds a peer has for what was handed to its socket and has not been taken yet, besides the time of a request. */
export const millisToTake = ({ writableLength }: ServerResponse): number => writableLength * 1000 / slowestPeer

/** Ends a handler early; the first reason counts. */
const interrupt = (one: InFlight, ending: InFlight["ending"]): void => {
  if (one.ending !== undefined) return
  one.ending = ending
  one.fiber?.unsafeInterruptAsFork(FiberId.none)
}

/** To Node.js its connection is idle, but there are octets to send. */
const isSending = ({ response }: InFlight): boolean => response.writableEnded && !response.writableFinished

/**
 * The requests of a listener whose answers have not been taken whole. A handler is done long before the last octet of a large
 * answer has left: until then its request is in flight, so that no end of a listener cuts it, and so that a peer that takes
 * nothing is found.
 */
export class RequestsInFlight {
  readonly #all = new Set<InFlight>()
  #whenNone: Deferred.Deferred<void> | undefined
  /** Called when a request is over. */
  onOver: () => void = () => {}

  get size(): number {
    return this.#all.size
  }

  /** Whether an answer is handed over, and not all sent. */
  get isSending(): boolean {
    for (const one of this.#all) if (isSending(one)) return true
    return false
  }

  /** Whether a request of this connection is in flight. */
  isOn(socket: Socket): boolean {
    for (const one of this.#all) if (one.socket === socket) return true
    return false
  }

  /** A request has begun; `handle` starts its handler. */
  begin(
    { socket }: IncomingMessage,
    response: ServerResponse,
    server: Server,
    handle: (one: InFlight) => Fiber.RuntimeFiber<void>
  ): void {
    const one: InFlight = {
      socket,
      response,
      server,
      endsAt: Number.POSITIVE_INFINITY,
      fiber: undefined,
      ending: undefined
    }
    this.#all.add(one)
    response.once("close", () => {
      if (!response.writableFinished) interrupt(one, "gone")
      if (one.fiber === undefined) this.#over(one)
    })
    const fiber = handle(one)
    one.fiber = fiber
    fiber.addObserver(() => {
      one.fiber = undefined
      if (response.writableFinished || response.destroyed) this.#over(one)
    })
  }

  /** Ends what has no time left: a handler answers that it is late, and a peer that has not taken its answer is cut off. */
  expire(now: number): void {
    for (const one of this.#all) {
      if (one.endsAt > now) continue
      if (one.fiber === undefined) one.socket.destroy()
      else interrupt(one, "late")
    }
  }

  /** Interrupts all handlers; answers how many requests that are. */
  cut(): number {
    for (const one of this.#all) interrupt(one, "cut")
    return this.#all.size
  }

  /** Waits until none is in flight. */
  readonly none: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#all.size === 0) return Effect.void
    this.#whenNone ??= Deferred.unsafeMake(FiberId.none)
    return Deferred.await(this.#whenNone)
  })

  #over(one: InFlight): void {
    if (!this.#all.delete(one)) return
    this.onOver()
    if (this.#all.size > 0 || this.#whenNone === undefined) return
    Deferred.unsafeDone(this.#whenNone, Exit.void)
    this.#whenNone = undefined
  }
}
