import { Effect } from "effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import type { OrderStatus } from "../../domain/Order.ts"
import { bytes, int, nullable, text, uuid } from "../../kernel/sql/Column.ts"
import { all, first } from "../../kernel/sql/Database.ts"
import { distinct } from "../../kernel/sql/Distinct.ts"
import { perFilters } from "../../kernel/sql/Filters.ts"
import { select, statement } from "../../kernel/sql/Statement.ts"
import { orderColumns } from "./Orders.ts"

/* Searches of orders for operators: by id without a profile, or by any of a set of filters. */

const record = {
  ...orderColumns,
  certificate: nullable(text()),
  certSerial: nullable(text()),
  certPubkey: nullable(bytes),
  certNotAfter: nullable(int),
  revokedAt: nullable(int),
  revocationReason: nullable(int),
  createdIp: nullable(text()),
  createdPtr: nullable(text())
}

/** An order with everything that operators are shown. Times are epoch seconds. */
export type OrderRecord = NonNullable<Effect.Effect.Success<ReturnType<typeof findRecord>>>

/** The filters of a listing; an absent filter excludes nothing. */
export interface OrderFilters {
  readonly profile?: string | undefined
  readonly accountId?: AccountId | undefined
  readonly status?: OrderStatus | undefined
  /** One whole name. */
  readonly identifier?: string | undefined
  /** The end of a name, which begins with a whole label. */
  readonly identifierSuffix?: string | undefined
  readonly certSerial?: string | undefined
  /** Epoch seconds, inclusive. */
  readonly since?: number | undefined
  /** Epoch seconds, exclusive. */
  readonly until?: number | undefined
}

const filterColumns = {
  profile: text(),
  accountId: uuid<AccountId>(),
  status: text<OrderStatus>(),
  identifier: text(),
  suffixReversed: text(),
  belowFrom: text(),
  belowTo: text(),
  certSerial: text(),
  since: int,
  until: int
}

const conditions: { readonly [F in keyof OrderFilters]-?: string } = {
  profile: "o.profile = :profile",
  accountId: "o.account_id = :accountId",
  status: "o.status = :status",
  identifier: "o.id IN (SELECT order_id FROM order_identifiers WHERE name = :identifier)",
  identifierSuffix: `o.id IN (SELECT order_id FROM order_identifiers
    WHERE name_rev = :suffixReversed OR (name_rev >= :belowFrom AND name_rev < :belowTo))`,
  certSerial: "o.cert_serial = :certSerial AND o.cert_serial IS NOT NULL",
  since: "o.created_at >= :since",
  until: "o.created_at < :until"
}

const filterNames = Object.keys(conditions) as ReadonlyArray<keyof OrderFilters>

/** The index of serials begins with the profile. A search without a profile reads it once for each profile. */
const anyProfile = `o.profile IN (SELECT profile FROM ${distinct("orders", "profile")})`

const whereOf = (used: ReadonlyArray<keyof OrderFilters>): string =>
  [
    ...used.map((name) => conditions[name]),
    ...used.includes("certSerial") && !used.includes("profile") ? [anyProfile] : []
  ].join(" AND ") || "1 = 1"

const pageStatement = perFilters(filterNames, (used) =>
  statement({
    name: "order_search",
    params: { ...filterColumns, limit: int, offset: int },
    row: record,
    sql: () =>
      `SELECT ${select(record, "o")} FROM orders o WHERE ${whereOf(used)}
       ORDER BY o.created_at DESC, o.id DESC LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(filterNames, (used) =>
  statement({
    name: "order_search_count",
    params: filterColumns,
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM orders o WHERE ${whereOf(used)}`
  }))

// The first comparison lets the engine read a range of an index, which an OR alone does not.
const behindStatement = perFilters(filterNames, (used) =>
  statement({
    name: "order_search_behind",
    params: { ...filterColumns, beforeTime: int, beforeId: uuid<OrderId>(), limit: int },
    row: record,
    sql: () =>
      `SELECT ${select(record, "o")} FROM orders o
       WHERE o.created_at <= :beforeTime AND (o.created_at < :beforeTime OR o.id < :beforeId) AND ${whereOf(used)}
       ORDER BY o.created_at DESC, o.id DESC LIMIT :limit`
  }))

const byId = statement({
  name: "order_record",
  params: { id: uuid<OrderId>() },
  row: record,
  sql: () => `SELECT ${select(record, "o")} FROM orders o WHERE o.id = :id`
})

const replacedBy = statement({
  name: "order_replaced_by",
  params: { profile: text(), replaces: text() },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `SELECT id FROM orders WHERE profile = :profile AND replaces = :replaces AND replaces IS NOT NULL
       AND status <> 'invalid'`
})

const valuesOf = (filters: OrderFilters) => {
  const reversed = Array.from(filters.identifierSuffix ?? "").toReversed().join("")
  return {
    profile: filters.profile ?? "",
    accountId: filters.accountId ?? nobody,
    status: filters.status ?? "valid",
    identifier: filters.identifier ?? "",
    suffixReversed: reversed,
    belowFrom: `${reversed}.`,
    belowTo: `${reversed}/`, // the character after the dot
    certSerial: filters.certSerial ?? "",
    since: filters.since ?? 0,
    until: filters.until ?? 0
  } as const
}

const nobody = "00000000-0000-0000-0000-000000000000" as AccountId

/** An order by its id alone. */
export const findRecord = (id: OrderId) => first(byId, { id })

/** The order that replaces a certificate, by the certID of that certificate. */
export const findSuccessor = (profile: string, certId: string) => first(replacedBy, { profile, replaces: certId })

/** A page of matching orders, newest first. */
export const search = (filters: OrderFilters, page: { readonly limit: number; readonly offset: number }) =>
  all(pageStatement(filters), { ...valuesOf(filters), ...page })

/** How many orders match. */
export const countMatches = (filters: OrderFilters) =>
  Effect.map(first(countStatement(filters), valuesOf(filters)), (row) => row?.total ?? 0)

/** Matching orders, newest first, after a given one. */
export const behind = (
  filters: OrderFilters,
  before: { readonly beforeTime: number; readonly beforeId: OrderId; readonly limit: number }
) => all(behindStatement(filters), { ...valuesOf(filters), ...before })
