import { Effect } from "effect"
import type { JobId, OrderId } from "../../domain/Id.ts"
import type { JobKind, JobStatus } from "../../domain/Job.ts"
import { int, nullable, text, uuid } from "./Column.ts"
import { all, first } from "./Database.ts"
import { perFilters } from "./Filters.ts"
import { tellingOfEnd, wakeChannel } from "./jobs.ts"
import { select, statement } from "./Statement.ts"

/* Jobs as operators look at them, and what they do with them. */

const record = {
  id: uuid<JobId>(),
  kind: text<JobKind>(),
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
export type JobRecord = NonNullable<Effect.Effect.Success<ReturnType<typeof find>>>

/** What a listing is narrowed by; an absent one does not narrow. */
export interface JobFilters {
  /** A kind this build may not know. */
  readonly kind?: string | undefined
  readonly status?: JobStatus | undefined
  /** About this order or one of its challenges. */
  readonly orderId?: OrderId | undefined
}

const nobody = "00000000-0000-0000-0000-000000000000" as OrderId

const filterColumns = { kind: text(), status: text<JobStatus>(), orderId: uuid<OrderId>(), orderKey: text() }

const wheres = (idText: (column: string) => string): { readonly [F in keyof JobFilters]-?: string } => ({
  kind: "j.kind = :kind",
  status: "j.status = :status",
  orderId: `(j.dedup_key = :orderKey OR j.dedup_key IN (SELECT ${idText("c.id")}
     FROM authorizations a JOIN challenges c ON c.authz_id = a.id WHERE a.order_id = :orderId))`
})

const filterNames = ["kind", "status", "orderId"] as const

const whereOf = (used: ReadonlyArray<keyof JobFilters>, idText: (column: string) => string): string =>
  used.map((name) => wheres(idText)[name]).join(" AND ") || "1 = 1"

const pageStatement = perFilters(filterNames, (used) =>
  statement({
    name: "job_page",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: ({ idText }) =>
      `SELECT ${select(record, "j")} FROM jobs j WHERE ${whereOf(used, idText)}
       ORDER BY j.created_at DESC, j.id DESC LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(filterNames, (used) =>
  statement({
    name: "job_count",
    params: filterColumns,
    row: { total: int },
    sql: ({ idText }) => `SELECT count(*) AS "total" FROM jobs j WHERE ${whereOf(used, idText)}`
  }))

const findStatement = statement({
  name: "job_by_id",
  params: { id: record.id },
  row: record,
  sql: () => `SELECT ${select(record)} FROM jobs WHERE id = :id`
})

const cancelStatement = statement({
  name: "job_cancel",
  params: { id: record.id, before: record.status, now: int },
  row: { id: record.id },
  sql: (fragments) =>
    `UPDATE jobs SET status = 'cancelled', updated_at = :now
     WHERE id = :id AND status = :before AND status IN ('ready', 'failed') RETURNING id${tellingOfEnd(fragments)}`
})

const advanceStatement = statement({
  name: "job_advance",
  params: { id: record.id, now: int },
  row: { id: record.id },
  sql: ({ dialect }) =>
    `UPDATE jobs SET run_at = :now, updated_at = :now WHERE id = :id AND status = 'ready' AND run_at > :now
     RETURNING id${dialect === "postgres" ? `, pg_notify('${wakeChannel}', kind || ' operator')` : ""}`
})

const onceMoreStatement = statement({
  name: "job_once_more",
  params: { id: record.id, now: int },
  row: { id: record.id },
  sql: ({ dialect }) =>
    `UPDATE jobs SET status = 'ready', run_at = :now, attempts = max_attempts - 1, updated_at = :now
     WHERE id = :id AND status = 'failed' AND NOT EXISTS (SELECT 1 FROM jobs l
       WHERE l.kind = jobs.kind AND l.dedup_key = jobs.dedup_key AND l.status IN ('ready', 'running'))
     RETURNING id${dialect === "postgres" ? `, pg_notify('${wakeChannel}', kind || ' operator')` : ""}`
})

const valuesOf = ({ kind = "", orderId = nobody, status = "ready" }: JobFilters) =>
  ({ kind, status, orderId, orderKey: orderId }) as const

/** A page of jobs, newest first. */
export const search = (filters: JobFilters, page: { readonly limit: number; readonly offset: number }) =>
  all(pageStatement(filters), { ...valuesOf(filters), ...page })

/** How many jobs match. */
export const countMatches = (filters: JobFilters) =>
  Effect.map(first(countStatement(filters), valuesOf(filters)), (row) => row?.total ?? 0)

/** One job. */
export const find = (id: JobId) => first(findStatement, { id })

/** `cancelled`, from the status it was seen in; `undefined` when that has changed, or is none to cancel from. */
export const cancel = (id: JobId, before: JobStatus, now: number) => first(cancelStatement, { id, before, now })

/** Pulls a waiting job forward; `undefined` when there is nothing to pull. */
export const advance = (id: JobId, now: number) => first(advanceStatement, { id, now })

/** One more attempt for a failed job; `undefined` when it has not failed, or another one lives in its place. */
export const onceMore = (id: JobId, now: number) => first(onceMoreStatement, { id, now })
