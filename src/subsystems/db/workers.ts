import { Effect } from "effect"
import { int, text } from "./Column.ts"
import { all, first, run } from "./Database.ts"
import { statement } from "./Statement.ts"

const upsert = statement({
  name: "worker_upsert",
  params: { owner: text(), roles: text(), version: text(), startedAt: int, now: int },
  row: {},
  sql: () =>
    `INSERT INTO workers (owner, roles, version, started_at, last_seen_at)
     VALUES (:owner, :roles, :version, :startedAt, :now)
     ON CONFLICT (owner) DO UPDATE SET last_seen_at = excluded.last_seen_at`
})

const removeStatement = statement({
  name: "worker_remove",
  params: { owner: text() },
  row: {},
  sql: () => `DELETE FROM workers WHERE owner = :owner`
})

const sweepStatement = statement({
  name: "worker_sweep",
  params: { before: int },
  row: { owner: text() },
  sql: () => `DELETE FROM workers WHERE last_seen_at < :before RETURNING owner`
})

const seenStatement = statement({
  name: "worker_seen",
  params: { prefix: text(), role: text(), since: int },
  row: { owner: text() },
  sql: () =>
    `SELECT owner FROM workers WHERE substr(owner, 1, length(:prefix)) = :prefix AND last_seen_at >= :since
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

/** Every process that is known, the youngest first. Times are epoch seconds. */
export const list = all(listStatement, {})

/** Writes or refreshes the presence of a process. */
export const present = (row: {
  readonly owner: string
  readonly roles: string
  readonly version: string
  readonly startedAt: number
  readonly now: number
}) => run(upsert, row)

/** Removes it at a clean shutdown. */
export const remove = (owner: string) => run(removeStatement, { owner })

/** Deletes presences not refreshed since an epoch second; answers how many. */
export const sweep = (before: number) => Effect.map(all(sweepStatement, { before }), (gone) => gone.length)

/** Whether a process of this host with this role was seen since an epoch second. */
export const wasSeen = (host: string, role: string, since: number) =>
  Effect.map(first(seenStatement, { prefix: `${host}:`, role, since }), (row) => row !== undefined)
