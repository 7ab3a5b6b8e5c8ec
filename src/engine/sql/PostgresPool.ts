import * as Cause from "effect/Cause"
import * as Exit from "effect/Exit"
import type { Ticket } from "../net/FairSemaphore.ts"
import { Bound } from "../net/FairSemaphore.ts"
import type { Peer } from "../net/Peer.ts"
import type { Connections } from "./Driver.ts"
import type { PostgresClient } from "./PostgresClient.ts"
import { codeOf, isStale, isUnanswered } from "./PostgresClient.ts"
import { isPassing } from "./PostgresServer.ts"
import { withRemedy } from "./Remedies.ts"
import { Late, SqlError } from "./SqlError.ts"

/*
 * Lends connections to PostgreSQL. The pool of the library `pg` is not used, because it cannot be told that another
 * server has replaced the one to which it is connected (docs/contribute/decisions/pool.md).
 */

/** A connection that is lent, with the function that gives it back. */
export interface Lent {
  readonly client: PostgresClient
  readonly giveBack: () => void
}

/** How long connections are kept, in milliseconds. */
export interface KeptFor {
  /** An idle connection is closed after this time, except for the last one. */
  readonly idle: number
  /** Each connection is closed after this time or up to a fifth earlier, so that not all of them close at once. */
  readonly life: number
  /** How often idle connections are checked. */
  readonly sweep: number
}

/**
 * The times that the service uses. The service reports its presence every ten seconds, and must not need a new session
 * for each report.
 */
export const keptFor: KeptFor = { idle: 60_000, life: 1_800_000, sweep: 5000 }

const lifeJitter = 0.2
/** In a smaller pool no connection is left for signs of life. */
const fewestWithOneLeft = 4
// Otherwise, if new connections find the server read-only too, each write would replace every connection.
const renewalMillis = 1000
const endMillis = 1000
const againMillis = 50
const longestPauseMillis = 1000
// A request that begins to wait during a pause must see further attempts before its time is over.
const longestPauseShare = 1 / 4

/** How a pool makes its connections, how many it makes, and how long a request waits for one. */
export interface PoolOptions {
  readonly max: number
  readonly acquireMillis: number
  /** Opens a connection. Rejects with the reason if it cannot be opened. */
  readonly connect: () => Promise<PostgresClient>
  /** Called when the server stops accepting writes, and when it accepts them again. */
  readonly onReadOnly?: (isReadOnly: boolean) => void
  readonly keptFor?: KeptFor
  /** Whether these connections are used only for reads, so that a read-only server is as good as any other. */
  readonly onlyReads?: boolean
}

/**
 * The codes of a server that has become read-only or is stopping. All other connections to this server must be closed
 * too.
 */
const readOnly = "25006"
const ofServer = new Set([readOnly, "57P01", "57P02", "57P03"])
/** The codes after which the server ends the connection. 25P03 and 25P04 are its time limits for transactions. */
const ofConnection = /^(08|57P|25P0[34])/

interface Held {
  readonly client: PostgresClient
  readonly lent: Lent
  readonly generation: number
  readonly since: number
  readonly until: number
  idleSince: number | undefined
  isRetired: boolean
  /** The turn for which it is lent. */
  ticket: Ticket | undefined
}

/** A request that waits for its turn or, if it has its turn, for a connection that is being opened. */
interface Waiter {
  readonly heard: (result: Exit.Exit<Lent, SqlError>) => void
  /** Undefined for a sign of life, which needs no turn. */
  readonly ticket: Ticket | undefined
  readonly timer: NodeJS.Timeout
}

const noConnection = (cause: unknown) => Exit.fail(new SqlError({ cause, message: "no connection" }))

/**
 * Lends connections. The first one is opened when it is requested. Peers share the connections by turns: otherwise a
 * client whose requests wait for each other, because they lock one row, would make everybody else wait for all of them.
 */
export class Pool {
  readonly #options: PoolOptions
  readonly #turns: Bound
  readonly #keptFor: KeptFor
  readonly #all = new Set<Held>()
  readonly #idle: Array<Held> = []
  readonly #waiting = new Set<Waiter>()
  /** Those of {@link #waiting} that have their turn. */
  readonly #next = new Set<Waiter>()
  readonly #watching = new Set<() => void>()
  readonly #ending = new Set<Promise<void>>()
  readonly #sweeping: NodeJS.Timeout
  #connecting = 0
  #withoutPeer = 0
  /** Connections of an earlier generation go to a server that has been replaced. */
  #generation = 0
  #renewedAt = -Infinity
  /** Why the last attempt to open a connection failed. Undefined after a success. */
  #refusal: unknown
  #isReadOnly = false
  #isClosed = false
  #emptied = () => {}

  constructor(options: PoolOptions) {
    this.#options = options
    const isShared = options.onlyReads === true || options.max < fewestWithOneLeft
    this.#turns = new Bound(isShared ? options.max : options.max - 1)
    this.#keptFor = options.keptFor ?? keptFor
    this.#sweeping = setInterval(() => this.#sweep(), this.#keptFor.sweep).unref()
  }

  /**
   * Lends a connection as soon as one is free, in the share of a peer. Work without a peer belongs to no share: it has its
   * turn before every peer that has some. Signs of life need no turn ({@link isVital}). Fails if no connection becomes
   * free in time.
   */
  lend(
    heard: (result: Exit.Exit<Lent, SqlError>) => void,
    { isVital = false, peer }: { readonly peer?: Peer | undefined; readonly isVital?: boolean } = {}
  ): void {
    if (this.#isClosed) return heard(noConnection(new Error("the pool is closed")))
    const called = () => this.#turnOf(waiter)
    const ticket: Ticket | undefined = isVital ? undefined : { peer: peer ?? this.#alone(), held: false, called }
    const isNext = ticket === undefined || this.#turns.enter(ticket)
    const idle = isNext ? this.#takeIdle() : undefined
    if (idle !== undefined) return this.#serve(heard, ticket, idle)
    const timer = setTimeout(() => this.#fail(waiter, this.#late()), this.#options.acquireMillis)
    const waiter: Waiter = { heard, ticket, timer }
    this.#waiting.add(waiter)
    if (!isNext) return this.#turns.wait(ticket)
    this.#next.add(waiter)
    this.#grow()
  }

  /** Returns the number of connections. Those that are being opened count as busy. */
  counts(): Connections {
    const idle = this.#idle.length
    return { idle, busy: this.#all.size - idle + this.#connecting }
  }

  /** Returns whether the server refused writes when this was last noticed. */
  isReadOnly(): boolean {
    return this.#isReadOnly
  }

  /**
   * Calls `tell` when the server has been replaced or has become read-only, until the returned function is called.
   */
  onRenewal(tell: () => void): () => void {
    this.#watching.add(tell)
    return () => void this.#watching.delete(tell)
  }

  /** Closes every connection as soon as it has been given back. */
  async end(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#sweeping)
    for (const waiter of this.#waiting) this.#fail(waiter, new Error("the pool is closed"))
    this.#dropStale()
    if (this.#all.size > 0) await new Promise<void>((resolve) => this.#emptied = resolve)
    // The wait is limited, because a dead server does not confirm the end of a connection.
    let timer: NodeJS.Timeout | undefined
    await Promise.race([Promise.all(this.#ending), new Promise((resolve) => timer = setTimeout(resolve, endMillis))])
    clearTimeout(timer)
  }

  #isStale(held: Held): boolean {
    const now = performance.now()
    return held.isRetired || held.client.isOver || this.#isClosed || held.generation < this.#generation ||
      // Only a new connection shows that the server accepts writes again.
      this.#isReadOnly && now - held.since >= renewalMillis || now >= held.until ||
      held.idleSince !== undefined && now - held.idleSince >= held.client.idleMillis
  }

  #close(client: PostgresClient): void {
    const ended: Promise<void> = (client.end() as Promise<void>).catch(() => {}).finally(() =>
      this.#ending.delete(ended)
    )
    this.#ending.add(ended)
  }

  #drop(held: Held): void {
    if (!this.#all.delete(held)) return
    const at = this.#idle.indexOf(held)
    if (at >= 0) this.#idle.splice(at, 1)
    this.#close(held.client)
    if (this.#all.size === 0) this.#emptied()
    this.#grow()
  }

  #dropStale(): void {
    for (const held of this.#idle.filter((one) => this.#isStale(one))) this.#drop(held)
  }

  #sweep(): void {
    this.#dropStale()
    const before = performance.now() - this.#keptFor.idle
    for (const held of this.#idle.filter(({ idleSince = 0 }) => idleSince < before)) {
      if (this.#all.size > 1) this.#drop(held)
    }
  }

  /** Retires all connections of the current generation: the idle ones now, the others when they are given back. */
  #renew(held: Held, isServerGone: boolean): void {
    const now = performance.now()
    if (held.generation < this.#generation || now - this.#renewedAt < renewalMillis) return
    this.#generation++
    this.#renewedAt = now
    this.#dropStale()
    if (isServerGone) { for (const tell of this.#watching) tell() }
  }

  #judge(held: Held, failure: unknown): void {
    const code = codeOf(failure)
    if (code === readOnly && held.generation === this.#generation) this.#see(true)
    if (ofServer.has(code) || ofConnection.test(code) || isStale(failure)) held.isRetired = true
    // If the server does not answer, each of the other connections would make a request wait just as long.
    const isServerGone = ofServer.has(code) || isUnanswered(failure)
    if (isServerGone || isStale(failure)) this.#renew(held, isServerGone)
    if (held.idleSince !== undefined && this.#isStale(held)) this.#drop(held)
  }

  #see(isReadOnly: boolean): void {
    if (this.#isReadOnly === isReadOnly || this.#options.onlyReads === true) return
    this.#isReadOnly = isReadOnly
    this.#options.onReadOnly?.(isReadOnly)
  }

  /** Returns a peer that nothing else has. */
  #alone(): Peer {
    const name = `own ${this.#withoutPeer++}`
    return { host: name, network: name }
  }

  #takeIdle(): Held | undefined {
    for (let held = this.#idle.pop(); held !== undefined; held = this.#idle.pop()) {
      if (!this.#isStale(held)) return held
      this.#drop(held)
    }
    return undefined
  }

  #turnOf(waiter: Waiter): void {
    this.#next.add(waiter)
    const idle = this.#takeIdle()
    if (idle !== undefined) return this.#end(waiter, idle)
    this.#grow()
  }

  #giveBack(held: Held): void {
    const { ticket } = held
    held.ticket = undefined
    if (this.#isStale(held)) this.#drop(held)
    else {
      const [next] = this.#next
      if (next !== undefined) this.#end(next, held)
      else {
        held.idleSince = performance.now()
        this.#idle.push(held)
      }
    }
    if (ticket !== undefined) this.#turns.leave(ticket)
  }

  #leave(waiter: Waiter): void {
    clearTimeout(waiter.timer)
    this.#waiting.delete(waiter)
    this.#next.delete(waiter)
  }

  /** Ends a wait with a connection. */
  #end(waiter: Waiter, held: Held): void {
    this.#leave(waiter)
    this.#serve(waiter.heard, waiter.ticket, held)
  }

  #serve(heard: Waiter["heard"], ticket: Ticket | undefined, held: Held): void {
    held.idleSince = undefined
    held.ticket = ticket
    heard(Exit.succeed(held.lent))
  }

  #late(): Late {
    const late = `no connection within ${this.#options.acquireMillis} ms (database.acquire_timeout_ms)`
    const refusal = this.#refusal
    if (!(refusal instanceof Error)) return new Late(late)
    return new Late(`${late}: ${withRemedy(codeOf(refusal), refusal.message)}`, { cause: refusal })
  }

  #fail(waiter: Waiter, cause: unknown): void {
    this.#leave(waiter)
    waiter.heard(noConnection(cause))
    if (waiter.ticket !== undefined) this.#turns.leave(waiter.ticket)
  }

  #admit(client: PostgresClient, generation: number): void {
    if (this.#isClosed) return this.#close(client)
    this.#see(client.isReadOnly)
    const since = performance.now()
    const held: Held = {
      client,
      lent: { client, giveBack: () => this.#giveBack(held) },
      generation,
      since,
      until: since + this.#keptFor.life * (1 - lifeJitter * Math.random()),
      idleSince: undefined,
      isRetired: false,
      ticket: undefined
    }
    client.judge = (failure) => this.#judge(held, failure)
    this.#all.add(held)
    this.#giveBack(held)
  }

  /**
   * Opens a connection for the request that has waited longest. Tries again while requests wait and the refusal may
   * pass.
   */
  async #open(): Promise<void> {
    this.#connecting++
    for (let attempt = 0; !this.#isClosed && this.#connecting <= this.#next.size; attempt++) {
      const generation = this.#generation
      const opened = await this.#options.connect().then(Exit.succeed, Exit.fail)
      if (Exit.isSuccess(opened)) {
        this.#connecting--
        this.#refusal = undefined
        return this.#admit(opened.value, generation)
      }
      this.#refusal = Cause.squash(opened.cause)
      if (codeOf(this.#refusal) === readOnly) this.#see(true)
      if (!isPassing(this.#refusal)) {
        this.#connecting--
        const [first] = this.#next
        if (first !== undefined) this.#fail(first, this.#refusal)
        return this.#grow()
      }
      const longest = Math.min(longestPauseMillis, this.#options.acquireMillis * longestPauseShare)
      const pause = Math.min(againMillis * 2 ** attempt, longest) * (0.5 + Math.random())
      await new Promise((resolve) => setTimeout(resolve, pause).unref())
    }
    this.#connecting--
    this.#grow()
  }

  #grow(): void {
    if (this.#isClosed) return
    while (this.#connecting < this.#next.size && this.#all.size + this.#connecting < this.#options.max) {
      void this.#open()
    }
  }
}
