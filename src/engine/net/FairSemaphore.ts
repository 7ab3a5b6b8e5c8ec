import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { finallyDo } from "../Finally.ts"
import type { Peer } from "./Peer.ts"
import { Holdings } from "./Peer.ts"

/**
 * The peer for which the fiber works. `undefined` if the fiber works for the service itself, or for a proxy with many
 * clients.
 */
export const currentPeer: Context.Reference<Peer | undefined> = Context.Reference<Peer | undefined>(
  "acme/engine/net/FairSemaphore/currentPeer",
  { defaultValue: () => undefined }
)

/**
 * A limit on concurrent work. Its turns are shared among the peers for which the work is done ({@link currentPeer}).
 */
export interface FairSemaphore {
  /** Runs `self` when it gets a turn. The turn is given back however `self` ends. */
  readonly take: <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Does the same as `take`, but runs `otherwise` if no turn becomes free within `millis`. */
  readonly takeWithin: <A, E, R, B, E2, R2>(
    millis: number,
    self: Effect.Effect<A, E, R>,
    otherwise: Effect.Effect<B, E2, R2>
  ) => Effect.Effect<A | B, E | E2, R | R2>
  /** Does the same as `take`, but runs `otherwise` if no turn is free now. */
  readonly takeIfFree: <A, E, R, B, E2, R2>(
    self: Effect.Effect<A, E, R>,
    otherwise: Effect.Effect<B, E2, R2>
  ) => Effect.Effect<A | B, E | E2, R | R2>
  /**
   * Does the same as `take`, but runs `otherwise` if too many are waiting ({@link Sharing.mostWaiting}): either at
   * once, or later, when a peer with fewer turns takes the place of this fiber.
   */
  readonly takeUnlessFull: <A, E, R, B, E2, R2>(
    self: Effect.Effect<A, E, R>,
    otherwise: Effect.Effect<B, E2, R2>
  ) => Effect.Effect<A | B, E | E2, R | R2>
  /** Returns whether `takeIfFree` would find a free turn now. */
  readonly isFree: Effect.Effect<boolean>
  /** Returns how many turns the host of the peer holds or waits for. */
  readonly underWay: Effect.Effect<number>
}

/**
 * A turn that a fiber holds or waits for. A fiber gets its turn in a single step, so that it cannot be interrupted
 * halfway.
 */
export interface Ticket {
  readonly peer: Peer | undefined
  held: boolean
  /** Called when the wait ends, with or without a turn. */
  called: () => void
}

/** How turns are shared. */
export interface Sharing {
  /** The peer in whose share the turns of a fiber are counted; {@link currentPeer} by default. */
  readonly peer?: Context.Reference<Peer | undefined>
  /**
   * A host gets another turn only while it holds fewer turns than this number times the free turns. For a network, the
   * limit is twice as high. The default is 2.
   */
  readonly hostToFree?: number
  /**
   * How many tickets may wait at the same time; by default there is no limit. If the limit is reached, a newcomer
   * replaces the newest waiting ticket of the peer with the most waiting tickets ({@link Holdings}).
   */
  readonly mostWaiting?: number
}

const mostToFree = 2

// Tickets without a peer wait in one queue.
const nobody: Peer = { host: "", network: "" }

/** The turns of a {@link FairSemaphore}, for code that does not run in fibers. */
export class Bound {
  readonly #hostToFree: number
  #free: number
  /** The numbers of turns that are held, by host and by network. */
  readonly #hosts = new Map<string, number>()
  readonly #networks = new Map<string, number>()
  /** The waiting tickets by network and host. A network or host that was given a turn moves to the end. */
  readonly #waiting = new Map<string, Map<string, Set<Ticket>>>()
  readonly #places = new Holdings<Ticket>()
  readonly #mostWaiting: number

  constructor(turns: number, hostToFree = mostToFree, mostWaiting = Number.POSITIVE_INFINITY) {
    this.#free = turns
    this.#hostToFree = hostToFree
    this.#mostWaiting = mostWaiting
  }

  /** Gives the ticket a turn now, if one is free for it. Returns whether it was given. */
  enter(ticket: Ticket): boolean {
    const isFree = this.isFor(ticket.peer)
    if (isFree) this.#count(ticket, 1)
    return isFree
  }

  /** Lets the ticket wait for a turn, or calls it at once if too many wait. */
  wait(ticket: Ticket): void {
    if (this.#places.size >= this.#mostWaiting) {
      const victim = this.#places.victimOf(ticket.peer)
      if (victim === undefined) return ticket.called()
      this.#forget(victim)
      victim.called()
    }
    this.#places.add(ticket.peer, ticket)
    const { host, network } = ticket.peer ?? nobody
    const hosts = this.#waiting.get(network) ?? new Map<string, Set<Ticket>>()
    const beside = hosts.get(host) ?? new Set()
    this.#waiting.set(network, hosts.set(host, beside.add(ticket)))
  }

  /** Takes the turn or the wait of a ticket away, and gives free turns to those who wait. */
  leave(ticket: Ticket): void {
    if (!ticket.held) return this.#forget(ticket)
    this.#count(ticket, -1)
    while (this.#free > 0 && this.#waiting.size > 0) {
      const next = this.#next()
      if (next === undefined) return
      this.#forget(next)
      this.#moveBack(next)
      this.#count(next, 1)
      next.called()
    }
  }

  /** Returns whether a turn is free for a peer. */
  isFor(peer: Peer | undefined): boolean {
    if (this.#free === 0 || peer === undefined) return this.#free > 0
    const most = this.#hostToFree * this.#free
    return (this.#hosts.get(peer.host) ?? 0) < most && (this.#networks.get(peer.network) ?? 0) < 2 * most
  }

  /** Returns how many turns the host of a peer holds or waits for. */
  ofHost({ host, network }: Peer): number {
    return (this.#hosts.get(host) ?? 0) + (this.#waiting.get(network)?.get(host)?.size ?? 0)
  }

  /** Counts a turn that was given (1) or given back (-1). */
  #count(ticket: Ticket, by: 1 | -1): void {
    ticket.held = by === 1
    this.#free -= by
    if (ticket.peer === undefined) return
    add(this.#hosts, ticket.peer.host, by)
    add(this.#networks, ticket.peer.network, by)
  }

  /** Removes a ticket. Its network and its host keep their places, because only a turn ends their wait. */
  #forget(ticket: Ticket): void {
    this.#places.remove(ticket.peer, ticket)
    const { host, network } = ticket.peer ?? nobody
    const hosts = this.#waiting.get(network)
    const beside = hosts?.get(host)
    if (hosts === undefined || beside === undefined) return
    beside.delete(ticket)
    if (beside.size === 0) hosts.delete(host)
    if (hosts.size === 0) this.#waiting.delete(network)
  }

  /** Moves the network and the host of a ticket that gets a turn to the end. */
  #moveBack({ peer }: Ticket): void {
    const { host, network } = peer ?? nobody
    const hosts = this.#waiting.get(network)
    if (hosts === undefined) return
    toEnd(this.#waiting, network)
    toEnd(hosts, host)
  }

  /**
   * Returns the next of the tickets that may be given a turn. A ticket of the network with the fewest turns comes
   * first, then a ticket of the host with the fewest turns. Of several equal tickets, the network comes first that has
   * waited longest for a turn, and of this network such a host. A search looks at no more hosts than hold turns, and
   * one more for each network that holds turns, however many wait.
   */
  #next(): Ticket | undefined {
    let found: Ticket | undefined
    let [ofNetwork, ofHost] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    for (const [name, hosts] of this.#waiting) {
      const network = this.#networks.get(name) ?? 0
      if (network > ofNetwork) continue
      for (const [ticket] of hosts.values()) {
        if (ticket === undefined || !this.isFor(ticket.peer)) continue
        const host = this.#hosts.get((ticket.peer ?? nobody).host) ?? 0
        if (network === ofNetwork && host >= ofHost) continue
        ;[found, ofNetwork, ofHost] = [ticket, network, host]
        if (host === 0) break
      }
      if (ofNetwork === 0 && ofHost === 0) break
    }
    return found
  }
}

const toEnd = <A>(queue: Map<string, A>, name: string): void => {
  const one = queue.get(name)
  if (one === undefined) return
  queue.delete(name)
  queue.set(name, one)
}

const add = (counts: Map<string, number>, name: string, by: number): void => {
  const count = (counts.get(name) ?? 0) + by
  if (count === 0) counts.delete(name)
  else counts.set(name, count)
}

/**
 * Makes a limit of `count` concurrent turns. Neither one host nor the hosts of one network can have all turns: some are
 * left for a newcomer, however long the work of the others takes. Of the waiting peers, the peer with the fewest turns
 * is next. By default a single host may have at most two thirds of the turns, and a single network four fifths.
 */
export const makeFairSemaphore = (
  count: number,
  { hostToFree, mostWaiting, peer = currentPeer }: Sharing = {}
): FairSemaphore => {
  const bound = new Bound(count, hostToFree, mostWaiting)
  const taken = <A, E, R, B, E2, R2>(
    self: Effect.Effect<A, E, R>,
    waiting: (turn: Effect.Effect<void>) => Effect.Effect<Option.Option<void>>,
    otherwise: Effect.Effect<B, E2, R2>
  ): Effect.Effect<A | B, E | E2, R | R2> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.withFiber((fiber) => {
        const ticket: Ticket = { peer: fiber.getRef(peer), held: false, called: () => {} }
        const leave = () => bound.leave(ticket)
        // If a turn is free, neither a timer nor a fiber is needed.
        if (bound.enter(ticket)) return finallyDo(restore(self), leave)
        const turn = Effect.callback<void>((resume) => {
          ticket.called = () => resume(Effect.void)
          bound.wait(ticket)
        })
        const admitted = Effect.flatMap(
          restore(waiting(turn)),
          (): Effect.Effect<A | B, E | E2, R | R2> => ticket.held ? restore(self) : otherwise
        )
        return finallyDo(admitted, leave)
      })
    )
  return {
    take: (self) => taken(self, Effect.map(Option.some), Effect.never),
    takeIfFree: (self, otherwise) => taken(self, () => Effect.succeed(Option.none()), otherwise),
    takeUnlessFull: (self, otherwise) => taken(self, Effect.map(Option.some), otherwise),
    isFree: Effect.map(peer, (one) => bound.isFor(one)),
    underWay: Effect.map(peer, (one) => one === undefined ? 0 : bound.ofHost(one)),
    takeWithin: (millis, self, otherwise) => taken(self, Effect.timeoutOption(millis), otherwise)
  }
}
