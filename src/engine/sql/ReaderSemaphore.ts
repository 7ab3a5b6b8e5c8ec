import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import { makeFairSemaphore } from "../net/FairSemaphore.ts"
import type { Peer } from "../net/Peer.ts"
import type { SqlError } from "./SqlError.ts"
import { noConnection } from "./SqlError.ts"

/**
 * The operator for whom the fiber runs reads aside. The reads are counted in the share of this operator. `undefined`
 * for the service itself, which has no share.
 */
export const currentAsker: Context.Reference<Peer | undefined> = Context.Reference<Peer | undefined>(
  "acme/engine/sql/ReaderSemaphore/currentAsker",
  { defaultValue: () => undefined }
)

// More readers would only compete for the same disk. On SQLite, each reader is a process.
const mostReaders = 2

/**
 * Returns how many connections of a process (`database.pool_max`) may be used at the same time for reads aside. One
 * connection is always left. Otherwise an operator's lists would make requests wait.
 */
export const readersOf = (connections: number): number => Math.min(connections - 1, mostReaders)

/**
 * Lets a limited number of reads run at the same time. All others wait for their turn. If there are two turns, one
 * operator gets at most one of them, so that the other is left for another operator.
 */
export interface ReaderSemaphore {
  /**
   * Runs a read when its turn has come. Fails if there is no turn within `database.acquire_timeout_ms`. The wait can be
   * interrupted. The read can also be interrupted, if it allows that.
   */
  readonly take: <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
}

/** Makes the semaphore for `readers` connections. A wait ends after `patienceMillis`. */
export const makeReaderSemaphore = (readers: number, patienceMillis: number): ReaderSemaphore => {
  const turns = makeFairSemaphore(readers, { peer: currentAsker, hostToFree: 1 })
  const late = noConnection(patienceMillis)
  return { take: (read) => turns.takeWithin(patienceMillis, read, late) }
}
