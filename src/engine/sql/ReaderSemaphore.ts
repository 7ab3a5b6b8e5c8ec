import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import { makeFairSemaphore } from "../net/FairSemaphore.ts"
import type { Peer } from "../net/Peer.ts"
import type { SqlError } from "./SqlError.ts"
import { noConnection } from "./SqlError.ts"

/**
 * The operator for whom the fiber reads beside the service. The reads count in the operator's share. `undefined` for
 * the service itself, which has no share.
 */
export const currentAsker: Context.Reference<Peer | undefined> = Context.Reference<Peer | undefined>(
  "acme/engine/sql/ReaderSemaphore/currentAsker",
  { defaultValue: () => undefined }
)

// More readers would only compete for the same disk; on SQLite each reader is a process.
const mostReaders = 2

/**
 * Returns how many of the connections of a process (`database.pool_max`) may read beside the service at once. Never all
 * connections, otherwise an operator's lists would make requests wait.
 */
export const readersOf = (connections: number): number => Math.min(connections - 1, mostReaders)

/**
 * Lets a limited number of reads run at once; the other reads wait for a turn. One operator gets at most one of two
 * turns, so that one turn is left for the next operator.
 */
export interface ReaderSemaphore {
  /**
   * Runs a read when it gets a turn. Fails if it gets no turn within `database.acquire_timeout_ms`. The wait can be
   * interrupted, and so can the read if it allows that.
   */
  readonly take: <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
}

/** Makes the turns for `readers` connections. A wait ends after `patienceMillis`. */
export const makeReaderSemaphore = (readers: number, patienceMillis: number): ReaderSemaphore => {
  const turns = makeFairSemaphore(readers, { peer: currentAsker, hostToFree: 1 })
  const late = noConnection(patienceMillis)
  return { take: (read) => turns.takeWithin(patienceMillis, read, late) }
}
