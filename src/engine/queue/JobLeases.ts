import * as Effect from "effect/Effect"
import { beyondSafe, int, packedUuid, rows, text, uuid } from "../sql/Column.ts"
import { all, first, lenient } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"
import type { Job, JobId } from "./Job.ts"
import { spentAnd } from "./JobRows.ts"

/* Rows that a process holds, and their leases. */

const id = uuid<JobId>()

// Each row of `held` is an id, the attempts, and the seconds spent since the last renewal. A row that somebody has locked is
// skipped, so that the other rows do not wait for it.
const renewStatement = statement({
  name: "job_renew",
  params: { owner: text(), until: int, held: rows },
  row: { id },
  sql: ({ aside, at, each, skipLocked }) =>
    `UPDATE jobs SET lease_until = :until, spent_seconds = ${spentAnd("held.spent")}
     FROM (SELECT ${at(0, "uuid")} AS job, ${at(1, "int")} AS attempt, ${at(2, "int")} AS spent FROM ${
      each(":held")
    }) AS held
     WHERE id = held.job AND attempts = held.attempt AND ${aside("status")} = 'running' AND lease_owner = :owner
       AND id IN (SELECT id FROM jobs WHERE id IN (SELECT ${at(0, "uuid")} FROM ${each(":held")}) ${skipLocked})
     RETURNING id`
})

const stillHeldStatement = statement({
  name: "job_still_held",
  params: { owner: text(), held: rows },
  row: { id },
  sql: ({ aside, at, each }) =>
    `SELECT id FROM jobs JOIN (SELECT ${at(0, "uuid")} AS job, ${at(1, "int")} AS attempt FROM ${
      each(":held")
    }) AS held ON id = held.job
     WHERE attempts = held.attempt AND ${aside("status")} = 'running' AND lease_owner = :owner`
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
  // A row that a stalled process has locked in its transaction is skipped this time, so that the other rows do not wait
  // for it.
  sql: ({ aside, at, each, skipLocked }) =>
    `UPDATE jobs SET status = 'ready', run_at = :now, lease_until = NULL, lease_owner = NULL, updated_at = :now
     FROM (SELECT ${at(0, "uuid")} AS job, ${at(1, "text")} AS owner, ${at(2, "int")} AS attempt, ${
      at(3, "int")
    } AS until
       FROM ${each(":dead")}) AS dead
     WHERE id = dead.job AND attempts = dead.attempt AND coalesce(lease_owner, '') = dead.owner
       AND (coalesce(lease_until, 0) = dead.until OR ${beyondSafe("lease_until")}) AND ${aside("status")} = 'running'
       AND id IN (SELECT id FROM jobs WHERE id IN (SELECT ${at(0, "uuid")} FROM ${each(":dead")}) ${skipLocked})
     RETURNING id`
})

const idsOf = (found: ReadonlyArray<{ readonly id: JobId }>): ReadonlySet<JobId> => new Set(found.map(({ id }) => id))

/**
 * Renews the leases of running attempts and adds the seconds spent since the last renewal. Answers the ids of the renewed
 * rows: not those that are held no more, and not those that are locked.
 */
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
    idsOf
  )

/** Which of these attempts still hold their rows, locked or not. */
export const stillHeld = (owner: string, held: ReadonlyArray<Pick<Job, "attempts" | "id">>) =>
  held.length === 0
    ? Effect.succeed<ReadonlySet<JobId>>(new Set())
    : Effect.map(
      all(stillHeldStatement, { owner, held: held.map(({ attempts, id }) => [packedUuid(id), attempts]) }),
      idsOf
    )

const takenStatement = statement({
  name: "job_taken",
  params: { id, attempts: int },
  row: { id },
  sql: () => "SELECT id FROM jobs WHERE id = :id AND attempts > :attempts AND status = 'running'"
})

/** Whether a later attempt of the job than this one runs: this one stood still until its lease was taken away. */
export const isTaken = ({ attempts, id }: Pick<Job, "attempts" | "id">) =>
  Effect.map(first(takenStatement, { id, attempts }), (row) => row !== undefined)

/**
 * A row that a process holds: its owner, `""` for none, and its lease. Each change of the lease shows that the owner
 * lives.
 */
export type Held = Effect.Success<typeof running>[number]

/** Every row that a process holds. */
export const running = lenient(runningStatement, {})

/** Makes these rows ready again, due now, if they have not changed. Answers how many did so. */
export const reclaim = (now: number, dead: ReadonlyArray<Held>) =>
  Effect.map(
    all(reclaimStatement, {
      now,
      dead: dead.map(({ attempts, id, leaseUntil, owner }) => [packedUuid(id), owner, attempts, leaseUntil])
    }),
    (rows) => rows.length
  )
