import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import type { JobStatus } from "../../engine/queue/Job.ts"
import { record } from "../../engine/queue/JobRecords.ts"
import { int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { keptTotal } from "../../engine/sql/KeptCounts.ts"
import { first, lenient } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

/* The statements with which operators query the queue: searches, and how long notifications have been waiting. */

/** The filters of a list. A filter that is absent excludes nothing. */
export interface JobFilters {
  /** The kind of the jobs. It may be a kind that this version does not know. */
  readonly kind?: string | undefined
  readonly status?: JobStatus | undefined
  /** The order that the jobs are about, directly or through one of its challenges. */
  readonly orderId?: OrderId | undefined
}

const nobody = "00000000-0000-0000-0000-000000000000" as OrderId

const filterColumns = { kind: name(), status: text<JobStatus>(), orderId: uuid<OrderId>(), orderKey: text() }

// All keys are in one list, because PostgreSQL would read every job if a second SELECT were joined with OR.
const wheres = (idText: (column: string) => string): { readonly [F in keyof JobFilters]-?: string } => ({
  kind: "j.kind = :kind",
  status: "j.status = :status",
  orderId: `j.dedup_key IN (SELECT :orderKey UNION ALL SELECT ${idText("c.id")}
     FROM authorizations a JOIN challenges c ON c.authz_id = a.id WHERE a.order_id = :orderId)`
})

const filterNames = ["kind", "status", "orderId"] as const

const whereOf = (used: ReadonlyArray<keyof JobFilters>, idText: (column: string) => string): string =>
  used.map((name) => wheres(idText)[name]).join(" AND ") || "1 = 1"

/**
 * Returns the sort order. No index contains the time, but an id begins with the time. So a list of all jobs is read in
 * the order of the ids, and no page has to be sorted.
 */
const newestFirst = (used: ReadonlyArray<keyof JobFilters>): string =>
  used.length === 0 ? "j.id DESC" : "j.created_at DESC, j.id DESC"

const pageStatement = perFilters(filterNames, (used) =>
  statement({
    name: "job_page",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: ({ idText }) =>
      `SELECT ${select(record, "j")} FROM jobs j WHERE ${whereOf(used, idText)}
       ORDER BY ${newestFirst(used)} LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(filterNames, (used) =>
  statement({
    name: "job_count",
    params: filterColumns,
    row: { total: int },
    sql: ({ idText }) => `SELECT count(*) AS "total" FROM jobs j WHERE ${whereOf(used, idText)}`
  }))

const valuesOf = ({ kind = "", orderId = nobody, status = "ready" }: JobFilters) =>
  ({ kind, status, orderId, orderKey: orderId }) as const

/** Returns a page of jobs, newest first. */
export const search = (filters: JobFilters, page: { readonly limit: number; readonly offset: number }) =>
  lenient(pageStatement(filters), { ...valuesOf(filters), ...page })

/** Returns how many jobs match. The number may be slightly out of date ({@link keptTotal}). */
export const countMatches = (filters: JobFilters) =>
  keptTotal(
    "job_count",
    filters,
    Effect.map(first(countStatement(filters), valuesOf(filters)), (row) => row?.total ?? 0)
  )

const undeliveredStatement = statement({
  name: "job_undelivered",
  params: {},
  row: { since: nullable(int) },
  sql: () =>
    `SELECT min(created_at) AS "since" FROM jobs WHERE kind = 'notify_deliver' AND status IN ('ready', 'running')`
})

/** Returns when the oldest undelivered notification was queued, or `undefined` if all notifications are delivered. */
export const undelivered = Effect.map(first(undeliveredStatement, {}), (row) => row?.since)
