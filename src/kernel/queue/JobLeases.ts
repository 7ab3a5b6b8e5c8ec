import { Effect } from "effect"
import { int, packedUuid, rows, text, uuid } from "../sql/Column.ts"
import { all } from "../sql/Database.ts"
import { statement } from "../sql/Statement.ts"
import type { JobId } from "./Job.ts"

/* Rows somebody has, and how long it is theirs. */

const id = uuid<JobId>()

// `held` are id, attempts, and seconds spent since the last time.
const renewStatement = statement({
  name: "job_renew",
  params: { owner: text(), until: int, held: rows },
  row: { id },
  sql: ({ aside, at, each }) =>
    `UPDATE jobs SET lease_until = :until, spent_seconds = spent_seconds + held.spent
     FROM (SELECT ${at(0, "uuid")} AS job, ${at(1, "int")} AS attempt, ${at(2, "int")} AS spent FROM ${
      each(":held")
    }) AS held
     WHERE id = held.job AND attempts = held.attempt AND ${
      aside("status")
    } = 'running' AND lease_owner = :owner RETURNING id`
})

const runningStatement = statement({
  name: "job_running",
  params: {},
  row: { id, owner: text(), attempts: int, leaseUntil: int },
  sql: () =>
    `SELECT id AS "id", coalesce(lease_owner, '') AS "owner", attempts AS "attempts", coalesce(lease_until, 0) AS "leaseUntil"
     FROM jobs WHERE status = 'running'`
})

const reclaimStatement = statement({
  name: "job_reclaim",
  params: { now: int, dead: rows },
  row: { id },
  // A row whose process stands still in the middle of its transaction is left for later; the others do not wait for it.
  sql: ({ aside, at, each, skipLocked }) =>
    `UPDATE jobs SET status = 'ready', run_at = :now, lease_until = NULL, lease_owner = NULL, updated_at = :now
     FROM (SELECT ${at(0, "uuid")} AS job, ${at(1, "text")} AS owner, ${at(2, "int")} AS attempt, ${
      at(3, "int")
    } AS until
       FROM ${each(":dead")}) AS dead
     WHERE id = dead.job AND attempts = dead.attempt AND coalesce(lease_owner, '') = dead.owner
       AND coalesce(lease_until, 0) = dead.until AND ${aside("status")} = 'running'
       AND id IN (SELECT id FROM jobs WHERE id IN (SELECT ${at(0, "uuid")} FROM ${each(":dead")}) ${skipLocked})
     RETURNING id`
})

/** Renews the leases of attempts that go on, with the seconds spent since the last time; answers which are held still. */
export const renew = (params: {
  readonly owner: string
  readonly until: number
  readonly held: ReadonlyArray<readonly [id: JobId, attempts: number, spentSeconds: number]>
}) =>
  Effect.map(
    all(renewStatement, {
      ...params,
      held: params.held.map(([id, attempts, spent]) => [packedUuid(id), attempts, spent])
    }),
    (held) => new Set(held.map(({ id }) => id))
  )

/** A row that somebody has: its owner, `""` for none, and its lease, which says that the owner lives as often as it changes. */
export type Held = Effect.Effect.Success<typeof running>[number]

/** Every row somebody has. */
export const running = all(runningStatement, {})

/** These rows, if nothing about them has changed, become ready again, due now; answers how many did. */
export const reclaim = (now: number, dead: ReadonlyArray<Held>) =>
  Effect.map(
    all(reclaimStatement, {
      now,
      dead: dead.map(({ attempts, id, leaseUntil, owner }) => [packedUuid(id), owner, attempts, leaseUntil])
    }),
    (rows) => rows.length
  )
