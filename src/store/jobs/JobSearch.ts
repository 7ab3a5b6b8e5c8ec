import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import type { JobStatus } from "../../engine/queue/Job.ts"
import { record } from "../../engine/queue/JobRecords.ts"
import { int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { keptTotal } from "../../engine/sql/KeptCounts.ts"
import { first, lenient } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
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

/** The names of the conditions. Most jobs are `done`, so the status has two conditions. */
const narrowings = ["kind", "orderId", "done", "status"] as const
const statuses = ["done", "status"] as const
type Narrowing = (typeof narrowings)[number]

const narrowed = ({ kind, orderId, status }: JobFilters): { readonly [_ in Narrowing]?: unknown } => ({
  kind,
  orderId,
  ...status === undefined ? {} : { [status === "done" ? "done" : "status"]: true }
})

/**
 * Returns the conditions of a search. An index begins with the kind and ends with the key, so a search for the jobs of
 * an order without a kind reads the index once for each kind. SQLite has no statistics, so the SQL marks the conditions
 * that must not choose the index.
 */
const whereOf = (used: ReadonlyArray<Narrowing>, { aside, dialect, idText }: Fragments): string => {
  const isUsed = (one: Narrowing) => used.includes(one)
  // PostgreSQL would read every job if these were joined.
  const among = (column: string, select: string) =>
    `${column} ${dialect === "postgres" ? `= ANY (ARRAY(${select}))` : `IN (${select})`}`
  const ofOrder = among(
    "j.dedup_key",
    `SELECT :orderKey UNION ALL SELECT ${idText("c.id")}
     FROM authorizations a JOIN challenges c ON c.authz_id = a.id WHERE a.order_id = :orderId`
  )
  const conditions: { readonly [F in Narrowing]: string } = {
    kind: `${isUsed("status") && !isUsed("orderId") ? aside("j.kind") : "j.kind"} = :kind`,
    orderId: isUsed("kind")
      ? ofOrder
      : `${among("j.kind", `SELECT kind FROM ${distinct("jobs", "kind")}`)} AND ${ofOrder}`,
    done: `${isUsed("kind") || isUsed("orderId") ? aside("j.status") : "j.status"} = 'done'`,
    status: `${isUsed("orderId") ? aside("j.status") : "j.status"} = :status`
  }
  return used.map((one) => conditions[one]).join(" AND ") || "1 = 1"
}

/**
 * Returns the sort order. No index contains the time, but an id begins with the time. So a list of all jobs is read in
 * the order of the ids, and no page has to be sorted.
 */
const newestFirst = (used: ReadonlyArray<Narrowing>): string =>
  used.length === 0 ? "j.id DESC" : "j.created_at DESC, j.id DESC"

const pageStatement = perFilters(narrowings, (used) =>
  statement({
    name: "job_page",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: (f) =>
      `SELECT ${select(record, "j")} FROM jobs j WHERE ${whereOf(used, f)}
       ORDER BY ${newestFirst(used)} LIMIT :limit OFFSET :offset`
  }), statuses)

const countStatement = perFilters(narrowings, (used) =>
  statement({
    name: "job_count",
    params: filterColumns,
    row: { total: int },
    sql: (f) => `SELECT count(*) AS "total" FROM jobs j WHERE ${whereOf(used, f)}`
  }), statuses)

const valuesOf = ({ kind = "", orderId = nobody, status = "ready" }: JobFilters) =>
  ({ kind, status, orderId, orderKey: orderId }) as const

/** Returns a page of jobs, newest first. */
export const search = (filters: JobFilters, page: { readonly limit: number; readonly offset: number }) =>
  lenient(pageStatement(narrowed(filters)), { ...valuesOf(filters), ...page })

/** Returns how many jobs match. The number may be slightly out of date ({@link keptTotal}). */
export const countMatches = (filters: JobFilters) =>
  keptTotal(
    "job_count",
    filters,
    Effect.map(first(countStatement(narrowed(filters)), valuesOf(filters)), (row) => row?.total ?? 0)
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
