import * as Effect from "effect/Effect"
import { int, nullable, text } from "../sql/Column.ts"
import { all, first, lenient, run } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"

const upsert = statement({
  name: "worker_upsert",
  params: { owner: text(), roles: text(), version: text(), startedAt: int, now: int },
  row: {},
  sql: () =>
    `INSERT INTO workers (owner, roles, version, started_at, last_seen_at)
     VALUES (:owner, :roles, :version, :startedAt, :now)
     ON CONFLICT (owner) DO UPDATE SET last_seen_at = excluded.last_seen_at`
})

const latestStatement = statement({
  name: "worker_latest",
  params: {},
  row: { latest: nullable(int) },
  sql: () => `SELECT max(last_seen_at) AS "latest" FROM workers`
})

const removeStatement = statement({
  name: "worker_remove",
  params: { owner: text() },
  row: {},
  sql: () => `DELETE FROM workers WHERE owner = :owner`
})

// A row seen after `after` was stamped by a wrong clock. If its process lives, it writes its row again soon.
const sweepStatement = statement({
  name: "worker_sweep",
  params: { before: int, after: int },
  row: { owner: text() },
  sql: () => `DELETE FROM workers WHERE last_seen_at NOT BETWEEN :before AND :after RETURNING owner`
})

const aheadStatement = statement({
  name: "worker_ahead",
  params: { owner: text(), after: int },
  row: { owner: text(), lastSeenAt: int },
  sql: () =>
    `SELECT owner AS "owner", last_seen_at AS "lastSeenAt" FROM workers
     WHERE last_seen_at > :after AND owner <> :owner ORDER BY last_seen_at DESC LIMIT 1`
})

const clockStatement = statement({
  name: "database_clock",
  params: {},
  row: { millis: nullable(int) },
  // An embedded database uses the clock of this process.
  sql: ({ dialect }) =>
    `SELECT ${dialect === "postgres" ? "(extract(epoch FROM clock_timestamp()) * 1000)::bigint" : "NULL"} AS "millis"`
})

const seenStatement = statement({
  name: "worker_seen",
  params: { prefix: text(), role: text(), since: int, until: int },
  row: { owner: text() },
  sql: () =>
    `SELECT owner FROM workers WHERE substr(owner, 1, length(:prefix)) = :prefix AND last_seen_at BETWEEN :since AND :until
       AND (',' || roles || ',') LIKE ('%,' || :role || ',%') LIMIT 1`
})

const listStatement = statement({
  name: "worker_list",
  params: {},
  row: { owner: text(), roles: text(), version: text(), startedAt: int, lastSeenAt: int },
  sql: () =>
    `SELECT owner AS "owner", roles AS "roles", version AS "version", started_at AS "startedAt",
       last_seen_at AS "lastSeenAt" FROM workers ORDER BY started_at DESC, owner`
})

/** Every known process, the youngest first. Times are epoch seconds. */
export const list = lenient(listStatement, {})

/** Writes or refreshes the presence of a process. */
export const present = (row: {
  readonly owner: string
  readonly roles: string
  readonly version: string
  readonly startedAt: number
  readonly now: number
}) => run(upsert, row)

/** Removes the presence of a process at a clean shutdown. */
export const remove = (owner: string) => run(removeStatement, { owner })

/**
 * Deletes presences refreshed before one epoch second, or after another, which is impossible with a right clock.
 * Answers how many.
 */
export const sweep = (before: number, after: number) =>
  Effect.map(all(sweepStatement, { before, after }), (gone) => gone.length)

/** Of the processes seen after an epoch second, the one that was seen latest; `owner` itself is left out. */
export const ahead = (owner: string, after: number) => first(aheadStatement, { owner, after })

/** Epoch milliseconds by the clock of the database's server; `undefined` if there is no server. */
export const databaseClock = Effect.map(first(clockStatement, {}), (row) => row?.millis)

/** Whether a process of this host with this role was seen between two epoch seconds. */
export const wasSeen = (host: string, role: string, since: number, until: number) =>
  Effect.map(first(seenStatement, { prefix: `${host}:`, role, since, until }), (row) => row !== undefined)

/** When the process that was seen last was seen. This query costs next to nothing. */
export const latest = first(latestStatement, {})
