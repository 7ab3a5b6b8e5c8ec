import * as Effect from "effect/Effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import type { OrderStatus } from "../../domain/Order.ts"
import { int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { keptTotal } from "../../engine/sql/KeptCounts.ts"
import { first, lenient, lenientFirst } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { orderColumns } from "../orders/OrderRows.ts"
import type { UpstreamStatus } from "./UpstreamOrderRows.ts"

/* Relayed orders for operators: their state at the upstream and their state here. The CSR is never shown. */

const record = {
  orderId: uuid<OrderId>(),
  profile: name(),
  accountId: uuid<AccountId>(),
  identifiers: orderColumns.identifiers,
  status: text<UpstreamStatus>(),
  localStatus: text<OrderStatus>(),
  localCreatedAt: int,
  localExpiresAt: nullable(int),
  upstreamOrderUrl: nullable(text()),
  upstreamFinalizeUrl: nullable(text()),
  upstreamCertificateUrl: nullable(text()),
  error: nullable(text()),
  requestId: nullable(text()),
  clientIp: nullable(text()),
  clientPtr: nullable(text()),
  userAgent: nullable(text()),
  createdAt: int,
  updatedAt: int
}

/** A relayed order. Times are epoch seconds. */
export type UpstreamOrderRecord = NonNullable<Effect.Success<ReturnType<typeof find>>>

/** The filters of a list. A filter that is absent excludes nothing. */
export interface UpstreamOrderFilters {
  readonly profile?: string | undefined
  /** The status of the order at the upstream. */
  readonly status?: UpstreamStatus | undefined
}

const columns = `u.order_id AS "orderId", o.profile AS "profile", o.account_id AS "accountId",
  o.identifiers AS "identifiers", u.status AS "status", o.status AS "localStatus", o.created_at AS "localCreatedAt",
  o.expires_at AS "localExpiresAt",
  u.upstream_order_url AS "upstreamOrderUrl", u.upstream_finalize_url AS "upstreamFinalizeUrl",
  u.upstream_certificate_url AS "upstreamCertificateUrl", u.error AS "error", u.request_id AS "requestId",
  u.client_ip AS "clientIp", u.client_ptr AS "clientPtr", u.user_agent AS "userAgent", u.created_at AS "createdAt",
  u.updated_at AS "updatedAt"`
const tables = "upstream_orders u JOIN orders o ON o.id = u.order_id"

const filterColumns = { profile: name(), status: text<UpstreamStatus>() }
const conditions = { profile: "o.profile = :profile", status: "u.status = :status" } as const
const filterNames = ["profile", "status"] as const
const whereOf = (used: ReadonlyArray<keyof UpstreamOrderFilters>): string =>
  used.map((name) => conditions[name]).join(" AND ") || "1 = 1"

// The rows are sorted by id: version 7 ids sort by time, and the index of the key has this order.
const pageStatement = perFilters(filterNames, (used) =>
  statement({
    name: "upstream_order_page",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: () =>
      `SELECT ${columns} FROM ${tables} WHERE ${whereOf(used)} ORDER BY u.order_id DESC LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(filterNames, (used) =>
  statement({
    name: "upstream_order_count",
    params: filterColumns,
    row: { total: int },
    sql: () =>
      `SELECT count(*) AS "total" FROM ${used.includes("profile") ? tables : "upstream_orders u"} WHERE ${
        whereOf(used)
      }`
  }))

const byIdStatement = statement({
  name: "upstream_order_record",
  params: { orderId: record.orderId },
  row: record,
  sql: () => `SELECT ${columns} FROM ${tables} WHERE u.order_id = :orderId`
})

const valuesOf = ({ profile = "", status = "processing" }: UpstreamOrderFilters) => ({ profile, status }) as const

/** Returns a page of relayed orders, newest first. */
export const search = (
  filters: UpstreamOrderFilters,
  page: { readonly limit: number; readonly offset: number }
) => lenient(pageStatement(filters), { ...valuesOf(filters), ...page })

/** Counts the matching relayed orders. */
export const countMatches = (filters: UpstreamOrderFilters) =>
  keptTotal(
    "upstream_order_count",
    filters,
    Effect.map(first(countStatement(filters), valuesOf(filters)), (row) => row?.total ?? 0)
  )

/** Finds a relayed order by the id of the local order. */
export const find = (orderId: OrderId) => lenientFirst(byIdStatement, { orderId })
