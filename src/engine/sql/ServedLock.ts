import * as Effect from "effect/Effect"
import { int } from "./Column.ts"
import type { Database } from "./Database.ts"
import { StorageFailed } from "./Database.ts"
import { first } from "./Query.ts"
import { statement } from "./Statement.ts"

/*
 * A lock that shows on PostgreSQL whether a database is served, without depending on any clock. Each session of a
 * process that serves shares the lock. A command that needs the database for itself takes the lock exclusively. On
 * SQLite, the write lock of the file does the same.
 */

const key = 473_821_902

/** An SQL expression that takes a share of the lock until the session ends. False if a command has the lock exclusively. */
export const shareLock = `pg_try_advisory_lock_shared(${key})`

/**
 * Returns the statement that takes the lock exclusively: for the session or, if a proxy pools transactions, for the
 * transaction.
 */
export const takeText = (keepsSession: boolean): string =>
  `SELECT pg_try_advisory_${keepsSession ? "lock" : "xact_lock"}(${key})::text AS taken`

/** Gives back the lock that {@link takeText} took for the session. */
export const giveBackText = `SELECT pg_advisory_unlock(${key})`

/** Lists the sessions that have the lock. */
export const holdersText = `SELECT pid::text AS pid, coalesce(host(client_addr), 'this host') AS address
  FROM pg_locks JOIN pg_stat_activity USING (pid)
  WHERE locktype = 'advisory' AND classid = 0 AND objid = ${key} AND objsubid = 1 AND granted
    AND datname = current_database() AND pid <> pg_backend_pid() ORDER BY pid`

/** Why a process may not serve now. */
export const copied =
  "a transfer copies this database: start when it has ended, with database.url set to the database that it filled"

const freeStatement = statement({
  name: "served_lock",
  params: {},
  row: { free: int },
  sql: ({ dialect }) =>
    dialect === "postgres"
      ? `SELECT CASE WHEN pg_try_advisory_xact_lock_shared(${key}) THEN 1 ELSE 0 END AS "free"`
      : `SELECT 1 AS "free"`
})

/** Fails if a command has the lock exclusively. */
export const refuseCopied: Effect.Effect<void, StorageFailed, Database> = Effect.flatMap(
  Effect.suspend(() => first(freeStatement, {})),
  (row) =>
    row?.free === 1
      ? Effect.void
      : Effect.fail(new StorageFailed({ statement: freeStatement.name, detail: copied, transient: false }))
)
