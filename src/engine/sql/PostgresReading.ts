import * as Effect from "effect/Effect"
import { rollback } from "./Database.ts"
import type { Connection, Executor } from "./Driver.ts"
import { askSession, giveUp, sessionOf, wanted } from "./PostgresCancel.ts"
import { codeOf, connectionOf, limitsOfTransaction, withTimeLimit } from "./PostgresClient.ts"
import type { Lent, Pool } from "./PostgresPool.ts"
import type { Connector } from "./PostgresServer.ts"
import { Late, SqlError } from "./SqlError.ts"

/* Reads of PostgreSQL that have a time limit, and that are cancelled when their results are no longer needed. */

/**
 * Settings for reads of listings and samples, for which one processor is enough. With parallel workers, a single count
 * would take every processor away from clients that wait for a certificate. Compiling a statement costs more than it
 * saves. Where most of a table is counted, reading all of it costs least.
 */
const readModestly = "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off; SET LOCAL enable_seqscan = on"

/**
 * How long a standby may take for its first answer. Otherwise a frozen standby would delay a read for as long as a
 * statement may take.
 */
const openedWithinMillis = 2000

/** The code of a statement that was cancelled, by a time limit of the server or on request. */
const cancelled = "57014"

/** Where reads get their connections. */
export interface ReadingParts {
  readonly pool: Pool
  /** Waits for a connection of the pool. */
  readonly reserve: Effect.Effect<Lent, SqlError>
  readonly connector: Connector
  readonly keepsSession: boolean
  /** Whether the pool may have another connection, over which a read can be cancelled. */
  readonly canGiveUp: boolean
  /** A statement with one row that is sent with the BEGIN of each transaction. */
  readonly asked?: string
}

/**
 * Runs reads in one read-only transaction, all of them together for at most `patienceMillis`. `answers` contains the
 * results of the statements that began the transaction; the last but one is the result of {@link ReadingParts.asked}.
 */
export type Reading = <A, R>(
  patienceMillis: number,
  body: (connection: Executor, answers: unknown) => Effect.Effect<A, never, R>
) => Effect.Effect<A, SqlError, R>

/** Makes {@link Reading} for the server of a pool. */
export const makeReading = (
  { asked, canGiveUp, connector, keepsSession, pool, reserve }: ReadingParts
): Reading => {
  const begin = () =>
    `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${readModestly}${
      keepsSession ? "" : `; ${limitsOfTransaction(connector.limits)}`
    }`
  return (patienceMillis, body) =>
    Effect.acquireUseRelease(
      reserve,
      ({ client }) => {
        const connection = connectionOf(client)
        const end = performance.now() + patienceMillis
        const message = `not done within ${patienceMillis} ms`
        const late = new SqlError({ cause: new Late(message), message })
        const bound = (millis: number) =>
          `SET LOCAL statement_timeout = ${Math.min(Math.ceil(millis), connector.limits.statement_timeout)}`
        let told = patienceMillis
        // The server enforces the time limit. It is set again when a tenth of the last limit has passed, because
        // setting it before each statement would double the round trips.
        const executeIn = (session: ReturnType<typeof sessionOf>): Connection["execute"] => (text, params) =>
          Effect.suspend(() => {
            const left = end - performance.now()
            if (left <= 0) {
              return late
            }
            const read = Effect.mapError(
              wanted(client, text, params, canGiveUp ? giveUp(pool, session) : Effect.void),
              (error) => codeOf(error.cause) === cancelled ? late : error
            )
            if (left > told * 0.9) {
              return read
            }
            told = left
            return Effect.andThen(Effect.uninterruptible(connection.executeRaw(bound(left), [])), read)
          })
        // A proxy that pools transactions may use a different session for each transaction, so the session is queried
        // within this transaction.
        const opening = [begin(), bound(patienceMillis), ...asked === undefined ? [] : [asked], askSession].join("; ")
        const opened = connection.executeRaw(opening, [])
        return Effect.ensuring(
          Effect.flatMap(
            Effect.uninterruptible(asked === undefined ? opened : withTimeLimit(client, openedWithinMillis, opened)),
            (answers) => body({ execute: executeIn(sessionOf(answers)) }, answers)
          ),
          rollback(connection) // the transaction has nothing to commit
        )
      },
      ({ giveBack }) => Effect.sync(giveBack)
    )
}
