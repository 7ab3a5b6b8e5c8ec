import * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import { int, nullable, text, uuid } from "../sql/Column.ts"
import { leaving, reached } from "../sql/Guard.ts"
import { all, first, lenientFirst } from "../sql/Query.ts"
import { select, statement } from "../sql/Statement.ts"

/** A job's id: a lower-case hyphenated UUID, like the id of every record. */
export type JobId = string & Brand.Brand<"JobId">
export const JobId = Brand.nominal<JobId>()

/** The status of a job. The last three are final. */
export type JobStatus = "ready" | "running" | "done" | "failed" | "cancelled"

/** The moves of a job between statuses. */
export const jobMoves = {
  /** A process takes the job, with a lease. */
  claim: { from: ["ready"], to: "running" },
  /** The attempt has failed for a while, or asks for a later run. */
  reschedule: { from: ["running"], to: "ready" },
  /** The process that had the job is gone. */
  reclaim: { from: ["running"], to: "ready" },
  /** The attempt has succeeded. */
  finish: { from: ["running"], to: "done" },
  /** The job was refused, has no attempts left or is past its deadline. */
  giveUp: { from: ["running"], to: "failed" },
  /** An operator gives the job one more attempt. */
  repeat: { from: ["failed"], to: "ready" },
  /** An operator cancels the job. */
  cancel: { from: ["ready", "failed"], to: "cancelled" }
} as const satisfies {
  readonly [move: string]: { readonly from: ReadonlyArray<JobStatus>; readonly to: JobStatus }
}

/** A claimed row. Times are epoch seconds. */
export interface Job {
  readonly id: JobId
  readonly kind: string
  readonly dedupKey: string
  readonly payload: string
  readonly attempts: number
  readonly maxAttempts: number
  readonly deadline: number | undefined
  readonly createdAt: number
  /**
   * The share in which the job counts among jobs of its kind: a group, a member of that group, and a part of that
   * member, if the job has them ({@link shareOf}).
   */
  readonly share: string
  /**
   * The time that attempts have taken, plus the waits that they asked for. It does not include time in which no process
   * held the job.
   */
  readonly spentSeconds: number
  /** The columns of the row that cannot be read, and the reason. The job has substitute values for them. */
  readonly unreadable?: string
}

/**
 * Returns the share of a job. Claims are fair between groups, between the members of each group, and between the parts
 * of each member, if it has parts. How many slots a member may have does not depend on its parts.
 */
export const shareOf = (group: string, member: string, part?: string): string =>
  part === undefined ? `${group}/${member}` : `${group}/${member}#${part}`

/** Returns the group of a share. */
export const groupOf = (share: string): string => share.slice(0, Math.max(share.indexOf("/"), 0))

/** Returns the part of a share that names its group and its member. */
export const memberOf = (share: string): string => share.slice(0, (share + "#").indexOf("#"))

/** Returns the least text that is not less than any share of a group: the shares of no group are empty. */
export const startOf = (group: string): string => group === "" ? "" : `${group}/`

/** Returns the least text that is greater than every share of a group. The character after `/` is `0`. */
export const endOf = (group: string): string => `${group}0`

/** The key of periodic kinds that have one live row. */
export const periodicKey = "all"

/** The columns of a claimed row. */
export const job = {
  id: uuid<JobId>(),
  kind: text(),
  dedupKey: text(),
  payload: text(),
  attempts: int,
  maxAttempts: int,
  deadline: nullable(int),
  createdAt: int,
  share: text(),
  spentSeconds: int
}

/**
 * The channel on which PostgreSQL notifies other processes of new jobs. A notification has a kind and the origin of the
 * jobs, separated by a space.
 */
export const wakeChannel = "acme_svc_jobs"

const insertStatement = statement({
  name: "job_insert",
  params: {
    id: job.id,
    kind: text(),
    dedupKey: text(),
    payload: text(),
    runAt: int,
    maxAttempts: int,
    deadline: nullable(int),
    now: int,
    share: text(),
    status: text<JobStatus>(),
    attempts: int,
    owner: nullable(text()),
    until: nullable(int)
  },
  row: { id: job.id },
  sql: () =>
    `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, deadline,
       created_at, updated_at, share, lease_owner, lease_until)
     VALUES (:id, :kind, :dedupKey, :payload, :status, :runAt, :attempts, :maxAttempts, :deadline, :now, :now, :share,
       :owner, :until)
     ON CONFLICT (kind, dedup_key) WHERE status IN ('ready', 'running') DO NOTHING
     RETURNING id`
})

const live = { id: job.id, status: text<JobStatus>(), runAt: int, createdAt: int }

const liveStatement = statement({
  name: "job_live",
  params: { kind: text(), dedupKey: text() },
  row: live,
  sql: () =>
    `SELECT ${select(live)} FROM jobs WHERE kind = :kind AND dedup_key = :dedupKey AND status IN ('ready', 'running')`
})

const ended = { lastError: nullable(text()) }

const lastErrorStatement = statement({
  name: "job_last_error",
  params: { kind: text(), dedupKey: text() },
  row: ended,
  sql: ({ checked }) =>
    `SELECT ${select(ended)} FROM jobs WHERE kind = :kind AND dedup_key = :dedupKey
       AND ${checked("status")} IN ('failed', 'cancelled')
     ORDER BY updated_at DESC, created_at DESC LIMIT 1`
})

const joinStatement = statement({
  name: "job_join",
  params: { kind: text(), dedupKey: text() },
  row: { id: job.id },
  // The update locks the row, so that the job can end only after its new reason to run is committed.
  sql: () =>
    `UPDATE jobs SET joined = CASE status WHEN 'running' THEN 1 ELSE joined END
     WHERE kind = :kind AND dedup_key = :dedupKey AND status IN ('ready', 'running') RETURNING id`
})

const mostSpent = 1_000_000_000

/**
 * Returns SQL for the seconds that a row has spent, plus some more seconds. An impossible value does not change,
 * because the sum might not fit into an integer of the engine.
 */
export const spentAnd = (more: string): string =>
  `CASE WHEN spent_seconds BETWEEN 0 AND ${mostSpent} THEN spent_seconds + ${more} ELSE spent_seconds END`

const attempt = { id: job.id, owner: text(), attempts: int }

const rescheduleStatement = statement({
  name: "job_reschedule",
  params: { ...attempt, runAt: int, attemptsAfter: int, spent: int, error: nullable(text()), now: int },
  row: { id: job.id },
  sql: ({ checked }) =>
    `UPDATE jobs SET status = ${
      reached(jobMoves.reschedule)
    }, run_at = :runAt, attempts = :attemptsAfter, last_error = :error,
       spent_seconds = ${spentAnd(":spent")}, lease_until = NULL, lease_owner = NULL, updated_at = :now
     WHERE id = :id AND ${leaving(jobMoves.reschedule, checked("status"))} AND lease_owner = :owner
       AND attempts = :attempts RETURNING id`
})

const settleStatement = statement({
  name: "job_settle",
  params: { ...attempt, status: text<JobStatus>(), error: nullable(text()), now: int },
  row: { id: job.id, joined: int },
  sql: ({ checked }) =>
    `UPDATE jobs SET status = :status, last_error = :error, lease_until = NULL, lease_owner = NULL, updated_at = :now
     WHERE id = :id AND ${leaving(jobMoves.finish, checked("status"))} AND lease_owner = :owner AND attempts = :attempts
     RETURNING id, joined`
})

const settleMootStatement = statement({
  name: "job_settle_moot",
  params: { ...attempt, now: int },
  row: { id: job.id, joined: int, status: text<JobStatus>() },
  sql: ({ checked }) =>
    `UPDATE jobs SET status = CASE WHEN last_error IS NULL THEN ${reached(jobMoves.finish)} ELSE ${
      reached(jobMoves.giveUp)
    } END,
       lease_until = NULL, lease_owner = NULL, updated_at = :now
     WHERE id = :id AND ${leaving(jobMoves.finish, checked("status"))} AND lease_owner = :owner AND attempts = :attempts
     RETURNING id, joined, status`
})

const cancelStatement = statement({
  name: "job_cancel",
  params: { id: job.id, before: text<JobStatus>(), now: int },
  row: { id: job.id },
  sql: ({ checked }) =>
    `UPDATE jobs SET status = ${reached(jobMoves.cancel)}, updated_at = :now
     WHERE id = :id AND ${checked("status")} = :before AND ${leaving(jobMoves.cancel, checked("status"))} RETURNING id`
})

const sweepStatement = statement({
  name: "job_sweep",
  params: { before: int, limit: int },
  row: { id: job.id },
  // PostgreSQL checks the status again if an operator has made the job ready in the meantime.
  sql: ({ aside }) =>
    `DELETE FROM jobs WHERE id IN (SELECT id FROM jobs
       WHERE status IN ('done', 'failed', 'cancelled') AND updated_at < :before LIMIT :limit)
       AND ${aside("status")} IN ('done', 'failed', 'cancelled') RETURNING id`
})

const unclaimed = { status: "ready", attempts: 0, owner: undefined, until: undefined } as const

/**
 * Inserts a ready row, or a row that is already claimed for its first attempt. If kind and key already have a live row,
 * inserts nothing and returns `undefined`.
 */
export const insert = (
  { claim, share = "", ...row }:
    & Omit<
      Parameters<typeof first<typeof insertStatement.params, typeof insertStatement.row>>[1],
      "share" | keyof typeof unclaimed
    >
    & { readonly share?: string | undefined; readonly claim?: Omit<Claimant, "now"> | undefined }
) =>
  first(insertStatement, {
    ...row,
    share,
    ...(claim === undefined ? unclaimed : { ...claim, status: "running", attempts: 1 })
  })

/** Finds the live row of a kind and key. */
export const findLive = (kind: string, dedupKey: string) => lenientFirst(liveStatement, { kind, dedupKey })

/** Returns why the last attempt failed, from the newest given-up or cancelled row of a kind and key. */
export const lastError = (kind: string, dedupKey: string) =>
  Effect.map(lenientFirst(lastErrorStatement, { kind, dedupKey }), (row) => row?.lastError)

/** Finds the live row of a kind and key. If the row is running, marks that it must run once more. */
export const join = (kind: string, dedupKey: string) => first(joinStatement, { kind, dedupKey })

/** The owner that claims, and when its lease ends. Times are epoch seconds. */
export interface Claimant {
  readonly now: number
  readonly owner: string
  readonly until: number
}

/** Identifies one attempt. If a settlement matches no row, the lease was taken away earlier. */
export interface Attempt {
  readonly id: JobId
  readonly owner: string
  readonly attempts: number
}

/**
 * Changes `running` to a final status. In the result, `joined` is 1 if the job was enqueued again after it was
 * claimed. Returns `undefined` if the lease was lost.
 */
export const settle = (
  of: Attempt,
  status: (typeof jobMoves)["finish" | "giveUp"]["to"],
  error: string | undefined,
  now: number
) => first(settleStatement, { ...of, status, error, now })

/**
 * Ends a row whose last attempt found nothing to do. The row becomes `failed` if it has a failure, otherwise
 * `done`. Returns `undefined` if the lease was lost.
 */
export const settleMoot = (of: Attempt, now: number) => first(settleMootStatement, { ...of, now })

/**
 * Cancels a job that still has the status in which the caller read it. Returns `undefined` if the status has
 * changed, or does not allow cancelling.
 */
export const cancel = (id: JobId, before: JobStatus, now: number) => first(cancelStatement, { id, before, now })

/** Changes `running` back to `ready`, due at `runAt`, with `attemptsAfter` as the number of attempts. */
export const reschedule = (
  attempt: Attempt,
  to: {
    readonly runAt: number
    readonly attemptsAfter: number
    /**
     * The seconds of the attempt that no renewal has counted, plus the seconds of the wait that the attempt asks for.
     */
    readonly spent: number
    readonly error: string | undefined
    readonly now: number
  }
) => first(rescheduleStatement, { ...attempt, ...to })

/** Deletes up to `limit` settled rows that were last changed before an epoch second. Returns their number. */
export const sweep = (before: number, limit: number) =>
  Effect.map(all(sweepStatement, { before, limit }), (gone) => gone.length)
