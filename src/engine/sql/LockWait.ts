import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EngineLog.ts"
import { lifeMillis } from "../Time.ts"
import type { Connection, Row } from "./Driver.ts"
import type { SqlError } from "./SqlError.ts"

/* How a migration on PostgreSQL waits for sessions that hold locks on its tables, without holding up the service. */

/**
 * Lifts an administrator's limit on the open transaction, for work that may take as long as it needs. Servers before
 * PostgreSQL 17 have no such limit.
 */
export const noTransactionLimit =
  "SELECT set_config(name, '0', true) FROM pg_settings WHERE name = 'transaction_timeout'"

/** How long work on the schema waits for other sessions. */
export interface Patience {
  /**
   * How long a statement waits for a lock on PostgreSQL. Meanwhile, every statement of the service that needs the same
   * table waits behind it.
   */
  readonly lockMillis: number
  /** The pause after the first attempt that waited in vain. Each further pause is twice as long as the one before. */
  readonly pauseMillis: number
  /** The time after which no attempt begins. */
  readonly patienceMillis: number
}

/** The function that is called while {@link untilFree} waits, and the patience of that wait. */
export interface Telling extends Partial<Patience> {
  /** Called with a sentence if a migration has waited in vain and will be tried again. */
  readonly waiting?: (sentence: string) => Effect.Effect<void>
}

/** The patience of a process of the service. */
export const patience: Patience = { lockMillis: 1000, pauseMillis: 1000, patienceMillis: 300_000 }
const longestPauseMillis = 16_000

/** Work on the schema waited in vain for a lock, and was rolled back. */
export class Locked extends Data.TaggedError("Locked")<{
  readonly what: string
  /** The session that holds the lock, for a sentence. */
  readonly holder: string
  readonly waited_ms: number
}> {}

/** The columns of a session that {@link sessionNamed} names. */
export const sessionColumns = `pid, application_name,
    to_char(query_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since`

/** Returns the name of the session of the first row, for a sentence. */
export const sessionNamed = (found: Effect.Effect<ReadonlyArray<Row>, SqlError>): Effect.Effect<string> =>
  found.pipe(
    Effect.map(([row]) => {
      if (row === undefined) return "another session"
      const name = String(row["application_name"] ?? "")
      const since = row["since"] === null ? "" : `, its statement since ${String(row["since"])}`
      return `the session with pid ${String(row["pid"])} (${name === "" ? "unnamed" : name}${since})`
    }),
    Effect.orElseSucceed(() => "another session")
  )

/**
 * Finds the sessions that hold a lock on a relation named in a statement, and returns the one that has been in a
 * transaction for the longest time. This transaction began before the statement began to wait, so the statement waited
 * for it.
 */
const holderText = `SELECT ${sessionColumns}
  FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE granted AND pid <> pg_backend_pid() AND datname = current_database() AND relation IN (
    SELECT oid FROM pg_class WHERE relname = ANY ($1) AND relnamespace = current_schema()::regnamespace
    UNION SELECT indrelid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relname = ANY ($1) AND relnamespace = current_schema()::regnamespace)
  ORDER BY xact_start NULLS LAST, pid LIMIT 1`

/** Returns the name of the session for which a statement has just waited in vain. */
export const holderOf = (connection: Connection, text: string): Effect.Effect<string> =>
  sessionNamed(connection.execute(holderText, [text.match(/\w+/g) ?? []]))

/**
 * Runs `attempt` again, after longer and longer pauses, as long as it fails with {@link Locked} and the patience lasts.
 */
export const untilFree = <A, E, R>(
  attempt: Effect.Effect<A, E | Locked, R>,
  telling: Telling
): Effect.Effect<A, E | Locked, R> =>
  Effect.gen(function*() {
    const { patienceMillis, pauseMillis, waiting } = { ...patience, ...telling }
    const begun = yield* lifeMillis
    const after = (pause: number, locked: Locked): Effect.Effect<A, E | Locked, R> =>
      Effect.gen(function*() {
        const { holder, what: name } = locked
        const waited_ms = Math.round((yield* lifeMillis) - begun)
        if (waited_ms + pause > patienceMillis) return yield* new Locked({ what: name, holder, waited_ms })
        yield* emit("db_migration_waiting", { name, holder, waited_ms })
        yield* waiting?.(
          `Migration ${name} waits for ${holder}, which holds a lock on what it changes. It is tried again in ${
            Math.ceil(pause / 1000)
          } s; until then the service is not held up.`
        ) ?? Effect.void
        yield* Effect.sleep(pause)
        return yield* tried(Math.min(pause * 2, longestPauseMillis))
      })
    const tried = (pause: number): Effect.Effect<A, E | Locked, R> =>
      Effect.catchIf(attempt, (error) => error instanceof Locked, (locked) => after(pause, locked))
    return yield* tried(pauseMillis)
  })
