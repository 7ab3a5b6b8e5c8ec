import { Effect } from "effect"
import type { JobId } from "../../domain/Id.ts"
import type { JobKind, JobStatus } from "../../domain/Job.ts"
import { jobKinds } from "../../domain/Job.ts"
import { int, nullable, rows, text, uuid } from "./Column.ts"
import { all, first } from "./Database.ts"
import type { Fragments } from "./Statement.ts"
import { select, statement } from "./Statement.ts"

const job = {
  id: uuid<JobId>(),
  kind: text<JobKind>(),
  dedupKey: text(),
  payload: text(),
  attempts: int,
  maxAttempts: int,
  deadline: nullable(int),
  createdAt: int
}

/** Where PostgreSQL tells other processes of a new job, once it has committed: its kind and who enqueued it. */
export const wakeChannel = "acme_svc_jobs"

const insertStatement = statement({
  name: "job_insert",
  params: {
    id: job.id,
    kind: text<JobKind>(),
    dedupKey: text(),
    payload: text(),
    runAt: int,
    maxAttempts: int,
    deadline: nullable(int),
    now: int,
    origin: text()
  },
  row: { id: job.id },
  sql: ({ dialect }) =>
    `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, deadline,
       created_at, updated_at)
     VALUES (:id, :kind, :dedupKey, :payload, 'ready', :runAt, 0, :maxAttempts, :deadline, :now, :now)
     ON CONFLICT (kind, dedup_key) WHERE status IN ('ready', 'running') DO NOTHING
     RETURNING id${dialect === "postgres" ? `, pg_notify('${wakeChannel}', :kind || ' ' || :origin)` : ""}`
})

const liveStatement = statement({
  name: "job_live",
  params: { kind: text<JobKind>(), dedupKey: text() },
  row: { id: job.id },
  // Locked, so that the job ends only after its new reason to run has committed.
  sql: ({ dialect }) =>
    `SELECT id FROM jobs WHERE kind = :kind AND dedup_key = :dedupKey AND status IN ('ready', 'running')${
      dialect === "postgres" ? " FOR UPDATE" : ""
    }`
})

// `kinds` are pairs of kind and lease in seconds.
const claiming = { now: int, owner: text(), limit: int, kinds: rows }
const claimOf = ({ at, each }: Fragments, ids: string): string =>
  `UPDATE jobs SET status = 'running', lease_owner = :owner, updated_at = :now,
     lease_until = :now + (SELECT ${at(1, "int")} FROM ${each(":kinds")} WHERE ${at(0, "text")} = jobs.kind),
     attempts = attempts + 1
   WHERE id IN (${ids}) RETURNING ${select(job)}`

const claimStatement = statement({
  name: "job_claim",
  params: claiming,
  row: job,
  sql: (fragments) => {
    const { at, byDue, each, skipLocked } = fragments
    return claimOf(
      fragments,
      `SELECT id FROM jobs ${byDue} WHERE status = 'ready' AND run_at <= :now
         AND kind IN (SELECT ${at(0, "text")} FROM ${each(":kinds")}) ORDER BY run_at, id LIMIT :limit ${skipLocked}`
    )
  }
})

// Rows of a kind that is not wanted may be many: each kind's own index is read, and the oldest of all are taken.
const claimAmongStatement = statement({
  name: "job_claim_among",
  params: claiming,
  row: job,
  sql: (fragments) => {
    const { at, each, skipLocked } = fragments
    const arms = jobKinds.map((kind) =>
      `SELECT * FROM (SELECT id, run_at FROM jobs WHERE status = 'ready' AND kind = '${kind}' AND run_at <= :now
         AND '${kind}' IN (SELECT ${at(0, "text")} FROM ${each(":kinds")})
         ORDER BY run_at, id LIMIT :limit ${skipLocked}) AS ${kind}`
    )
    return claimOf(
      fragments,
      `SELECT id FROM (${arms.join(" UNION ALL ")}) AS due ORDER BY run_at, id LIMIT :limit`
    )
  }
})

const attempt = { id: job.id, owner: text(), attempts: int }

const settleStatement = statement({
  name: "job_settle",
  params: { ...attempt, status: text<JobStatus>(), error: nullable(text()), now: int },
  row: { id: job.id },
  sql: () =>
    `UPDATE jobs SET status = :status, last_error = :error, lease_until = NULL, lease_owner = NULL, updated_at = :now
     WHERE id = :id AND status = 'running' AND lease_owner = :owner AND attempts = :attempts RETURNING id`
})

const rescheduleStatement = statement({
  name: "job_reschedule",
  params: { ...attempt, runAt: int, attemptsAfter: int, error: nullable(text()), now: int },
  row: { id: job.id },
  sql: () =>
    `UPDATE jobs SET status = 'ready', run_at = :runAt, attempts = :attemptsAfter, last_error = :error,
       lease_until = NULL, lease_owner = NULL, updated_at = :now
     WHERE id = :id AND status = 'running' AND lease_owner = :owner AND attempts = :attempts RETURNING id`
})

const reclaimStatement = statement({
  name: "job_reclaim",
  params: { now: int },
  row: { id: job.id },
  // A row whose process stands still in the middle of its transaction is left for later; the others do not wait for it.
  sql: ({ skipLocked }) =>
    `UPDATE jobs SET status = 'ready', run_at = :now, lease_until = NULL, lease_owner = NULL, updated_at = :now
     WHERE id IN (SELECT id FROM jobs WHERE status = 'running' AND lease_until < :now ${skipLocked}) RETURNING id`
})

const unknownKindsStatement = statement({
  name: "job_unknown_kinds",
  params: { kinds: rows },
  row: { kind: text(), job_id: job.id, count: int },
  // Rows of the kinds that are known may be many, and are not visited: the kinds are met one by one in the index.
  sql: ({ at, each }) =>
    `SELECT kind AS "kind", (SELECT j.id FROM jobs j WHERE j.kind = p.kind AND j.status = 'ready' LIMIT 1) AS "job_id",
       (SELECT count(*) FROM jobs j WHERE j.kind = p.kind AND j.status = 'ready') AS "count"
      FROM (WITH RECURSIVE met(kind) AS (
          SELECT min(kind) FROM jobs
          UNION ALL SELECT (SELECT min(n.kind) FROM jobs n WHERE n.kind > met.kind) FROM met WHERE met.kind IS NOT NULL)
        SELECT kind FROM met WHERE kind IS NOT NULL) p
      WHERE kind NOT IN (SELECT ${at(0, "text")} FROM ${each(":kinds")})
        AND EXISTS (SELECT 1 FROM jobs j WHERE j.kind = p.kind AND j.status = 'ready') ORDER BY kind`
})

const sweepStatement = statement({
  name: "job_sweep",
  params: { before: int, limit: int },
  row: { id: job.id },
  sql: () =>
    `DELETE FROM jobs WHERE id IN (SELECT id FROM jobs
       WHERE status IN ('done', 'failed', 'cancelled') AND updated_at < :before LIMIT :limit) RETURNING id`
})

/** Inserts a ready row, or nothing when kind and key have a live one (`undefined`). */
export const insert = (row: Parameters<typeof first<typeof insertStatement.params, typeof insertStatement.row>>[1]) =>
  first(insertStatement, row)

/** The live row of a kind and key. */
export const findLive = (kind: JobKind, dedupKey: string) => first(liveStatement, { kind, dedupKey })

/**
 * Claims the oldest due rows of the given kinds: one guarded write. Leases are in seconds; `among` says that other kinds may
 * have many rows that are due and not wanted.
 */
export const claim = (params: {
  readonly now: number
  readonly owner: string
  readonly limit: number
  readonly leases: ReadonlyArray<readonly [kind: JobKind, seconds: number]>
  readonly among?: boolean
}) =>
  Effect.map(
    all(params.among === true ? claimAmongStatement : claimStatement, {
      now: params.now,
      owner: params.owner,
      limit: params.limit,
      kinds: params.leases
    }),
    (claimed) => [...claimed].sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1))
  )

/** Identifies one attempt: a settlement that matches no row came after its lease was taken away. */
export interface Attempt {
  readonly id: JobId
  readonly owner: string
  readonly attempts: number
}

/** `running` to a final status; `undefined` when the lease was lost. */
export const settle = (
  attempt: Attempt,
  status: "done" | "failed" | "cancelled",
  error: string | undefined,
  now: number
) => first(settleStatement, { ...attempt, status, error, now })

/** `running` back to `ready`, due at `runAt`, with `attemptsAfter` on the row. */
export const reschedule = (
  attempt: Attempt,
  to: {
    readonly runAt: number
    readonly attemptsAfter: number
    readonly error: string | undefined
    readonly now: number
  }
) => first(rescheduleStatement, { ...attempt, ...to })

/** Rows of dead runners become ready again, due now; answers how many. */
export const reclaim = (now: number) => Effect.map(all(reclaimStatement, { now }), (rows) => rows.length)

/** Ready rows by kind, for kinds other than these. */
export const unknownKinds = (kinds: ReadonlyArray<JobKind>) =>
  all(unknownKindsStatement, { kinds: kinds.map((kind) => [kind]) })

/** Deletes up to `limit` settled rows last touched before an epoch second; answers how many. */
export const sweep = (before: number, limit: number) =>
  Effect.map(all(sweepStatement, { before, limit }), (gone) => gone.length)
