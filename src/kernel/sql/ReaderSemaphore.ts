import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { makeFairSemaphore } from "../net/FairSemaphore.ts"
import type { Peer } from "../net/Peer.ts"
import { emit } from "../telemetry/EventLog.ts"
import { Late } from "./Late.ts"
import { SqlError } from "./SqlError.ts"

/**
 * Whoever the fiber reads for beside the service, in whose share these reads are counted. `undefined` for the service itself, which is
 * nobody's share.
 */
export const currentAsker: Context.Reference<Peer | undefined> = Context.Reference<Peer | undefined>(
  "acme/kernel/sql/ReaderSemaphore/currentAsker",
  { defaultValue: () => undefined }
)

// More would only read the same pages of one disk; on SQLite each is a process.
const mostReaders = 2

/**
 * How many of the connections of a process (`database.pool_max`) reads beside the service may have at once: never all of
 * them, or an operator's lists would make requests wait.
 */
export const readersOf = (connections: number): number => Math.min(connections - 1, mostReaders)

/** Lets so many read at once and the others in turn. An asker has one of two, so that one is left for whoever comes next. */
export interface ReaderSemaphore {
  /** Fails if no turn comes within `database.acquire_timeout_ms`. The wait may be interrupted, and the read if it allows that. */
  readonly take: <A, E, R>(read: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
}

/** Turns for `readers` connections. A wait ends after `patienceMillis`. */
export const makeReaderSemaphore = (readers: number, patienceMillis: number): ReaderSemaphore => {
  const turns = makeFairSemaphore(readers, { peer: currentAsker, hostToFree: 1 })
  const late = new SqlError({
    cause: new Late(`no connection within ${patienceMillis} ms (database.acquire_timeout_ms)`),
    message: "no connection"
  })
  const none = Effect.andThen(emit("db_pool_timeout", { waited_ms: patienceMillis }), late)
  return { take: (read) => turns.takeWithin(patienceMillis, read, none) }
}
