import type * as Effect from "effect/Effect"
import { int, nullable, rows, text, uuid } from "../sql/Column.ts"
import { distinct } from "../sql/Distinct.ts"
import { leaving, reached } from "../sql/Guard.ts"
import { all, first, lenient, lenientFirst } from "../sql/Query.ts"
import { select, statement } from "../sql/Statement.ts"
import type { JobId, JobStatus } from "./Job.ts"
import { jobMoves, wakeChannel } from "./Job.ts"

/* Jobs as operators see them, single or by kind, and what operators can do with a job. */

/** The columns to read. */
export const record = {
  id: uuid<JobId>(),
  kind: text(),
  dedupKey: text(),
  payload: text(),
  status: text<JobStatus>(),
  runAt: int,
  attempts: int,
  maxAttempts: int,
  deadline: nullable(int),
  leaseUntil: nullable(int),
  leaseOwner: nullable(text()),
  lastError: nullable(text()),
  createdAt: int,
  updatedAt: int
}

/** A row of the queue. Times are epoch seconds. */
export type JobRecord = NonNullable<Effect.Success<ReturnType<typeof find>>>

const findStatement = statement({
  name: "job_by_id",
  params: { id: record.id },
  row: record,
  sql: () => `SELECT ${select(record)} FROM jobs WHERE id = :id`
})

const advanceStatement = statement({
  name: "job_advance",
  params: { id: record.id, now: int },
  row: { id: record.id },
  sql: ({ checked, dialect }) =>
    `UPDATE jobs SET run_at = :now, updated_at = :now
     WHERE id = :id AND ${checked("status")} = 'ready' AND ${checked("run_at")} > :now
     RETURNING id${dialect === "postgres" ? `, pg_notify('${wakeChannel}', kind || ' operator')` : ""}`
})

const onceMoreStatement = statement({
  name: "job_once_more",
  params: { id: record.id, now: int },
  row: { id: record.id },
  sql: ({ checked, dialect }) =>
    `UPDATE jobs SET status = ${reached(jobMoves.repeat)}, run_at = :now, attempts = max_attempts - 1, updated_at = :now
     WHERE id = :id AND ${leaving(jobMoves.repeat, checked("status"))} AND (SELECT l.id FROM jobs l
       WHERE l.kind = jobs.kind AND l.dedup_key = jobs.dedup_key AND l.status IN ('ready', 'running')) IS NULL
     RETURNING id${dialect === "postgres" ? `, pg_notify('${wakeChannel}', kind || ' operator')` : ""}`
})

const unknownKindsStatement = statement({
  name: "job_unknown_kinds",
  params: { kinds: rows },
  row: { kind: text(), job_id: record.id, count: int },
  // Known kinds may have many rows. These are not read: the distinct kinds are read one by one from the index.
  sql: ({ at, each }) =>
    `SELECT kind AS "kind", (SELECT j.id FROM jobs j WHERE j.kind = p.kind AND j.status = 'ready' LIMIT 1) AS "job_id",
       (SELECT count(*) FROM jobs j WHERE j.kind = p.kind AND j.status = 'ready') AS "count"
      FROM ${distinct("jobs", "kind")}
     WHERE kind NOT IN (SELECT ${at(0, "text")} FROM ${each(":kinds")})
        AND EXISTS (SELECT 1 FROM jobs j WHERE j.kind = p.kind AND j.status = 'ready') ORDER BY kind`
})

/** Finds one job. */
export const find = (id: JobId) => lenientFirst(findStatement, { id })

/** Makes a waiting job due now. Returns `undefined` if the job does not wait for a later time. */
export const advance = (id: JobId, now: number) => first(advanceStatement, { id, now })

/**
 * Gives a failed job one more attempt. Returns `undefined` if the job has not failed, or if another live job has its
 * key.
 */
export const onceMore = (id: JobId, now: number) => first(onceMoreStatement, { id, now })

/** Counts the ready rows of kinds that are not among `kinds`, by kind. */
export const unknownKinds = (kinds: ReadonlyArray<string>) =>
  all(unknownKindsStatement, { kinds: kinds.map((kind) => [kind]) })

const countsStatement = statement({
  name: "queue_counts",
  params: {},
  row: { kind: text(), status: text<"ready" | "running" | "failed">(), count: int },
  // Many jobs may be ready. They are counted from an index that contains their kinds.
  sql: ({ indexedBy }) =>
    `SELECT kind AS "kind", 'ready' AS "status", count(*) AS "count" FROM jobs ${indexedBy("jobs_due_of_kind")}
     WHERE status = 'ready' GROUP BY kind
     UNION ALL SELECT kind, status, count(*) FROM jobs WHERE status IN ('running', 'failed') GROUP BY kind, status
     ORDER BY "kind", "status"`
})

const oldestStatement = statement({
  name: "queue_oldest",
  params: { now: int },
  row: { kind: text(), runAt: int },
  sql: () =>
    `SELECT kind AS "kind", min(run_at) AS "runAt" FROM jobs WHERE status = 'ready' AND run_at <= :now
     GROUP BY kind ORDER BY kind`
})

const retriedStatement = statement({
  name: "queue_retried",
  params: {},
  row: { kind: text(), count: int },
  sql: () =>
    `SELECT kind AS "kind", count(*) AS "count" FROM jobs WHERE status = 'ready' AND attempts > 0
     GROUP BY kind ORDER BY kind`
})

const longestStatement = statement({
  name: "queue_longest",
  params: {},
  row: { kind: text(), since: int },
  // The claim of a row is the last write to that column until the attempt ends.
  sql: () =>
    `SELECT kind AS "kind", min(updated_at) AS "since" FROM jobs WHERE status = 'running' GROUP BY kind ORDER BY kind`
})

/** Counts the rows that wait, run or have failed, by kind. */
export const counts = lenient(countsStatement, {})

/** Counts the waiting rows that already had an attempt, by kind. */
export const retried = lenient(retriedStatement, {})

/** Returns when the longest running attempt began, by kind. */
export const longest = lenient(longestStatement, {})

/** Returns the due time of the oldest due row, by kind. */
export const oldest = (now: number) => lenient(oldestStatement, { now })
