import * as Effect from "effect/Effect"
import { defaultKind } from "../../domain/CertificateKind.ts"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { idBefore } from "../../domain/Id.ts"
import type { OrderFilterWord } from "../../domain/Order.ts"
import { orderStatuses } from "../../domain/Order.ts"
import { bytes, int, name, nullable, packedUuid, rows, text, uuid } from "../../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { keptTotal } from "../../engine/sql/KeptCounts.ts"
import { all, first, lenient, lenientFirst } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { statement } from "../../engine/sql/Statement.ts"
import type { EndRange } from "./EndRange.ts"
import { endColumns, endsWithin, endValues } from "./EndRange.ts"
import { reversedRange } from "./NameWalk.ts"
import * as orderNames from "./OrderNames.ts"
import { nameColumns, nameConditions } from "./OrderNames.ts"
import { orderColumns, selectOrder } from "./OrderRows.ts"
import { chain, chainOf } from "./StoredChain.ts"
import { unissued } from "./Unissued.ts"

/* Finds orders for operators, either by id in any profile, or with any combination of filters. */

const more = {
  certSerial: nullable(name()),
  certNotAfter: nullable(int),
  revokedAt: nullable(int),
  revocationReason: nullable(int),
  createdIp: nullable(text()),
  createdPtr: nullable(text())
}

const listed = { ...orderColumns, ...more }

type Row = Effect.Success<ReturnType<typeof all<typeof listedStatement.params, typeof listed>>>[number]

const record = { ...listed, certificate: nullable(chain), certPubkey: nullable(bytes) }

/** An order as lists show it. Times are epoch seconds. */
export type ListedOrder = Row

/** An order with everything that operators can see about it. */
export type OrderRecord = NonNullable<Effect.Success<ReturnType<typeof findRecord>>>

/** The filters of a list. A filter that is absent excludes nothing. */
export interface OrderFilters {
  readonly profile?: string | undefined
  readonly accountId?: AccountId | undefined
  readonly status?: OrderFilterWord | undefined
  /** A whole name. */
  readonly identifier?: string | undefined
  /** One or more whole labels at the end of a name. */
  readonly identifierSuffix?: string | undefined
  readonly certSerial?: string | undefined
  /** The name of the kind of certificate. */
  readonly kind?: string | undefined
  /** When the certificate ends. Orders without a certificate are left out. */
  readonly ends?: EndRange | undefined
  /** The start of the time span, in epoch seconds (inclusive). */
  readonly since?: number | undefined
  /** The end of the time span, in epoch seconds (exclusive). */
  readonly until?: number | undefined
}

const filterColumns = {
  profile: name(),
  accountId: uuid<AccountId>(),
  status: text<OrderFilterWord>(),
  ...nameColumns,
  certSerial: name(),
  kind: name(),
  ...endColumns,
  since: int,
  until: int,
  /** A lower bound of the ids of orders that were created in the time span. */
  sinceId: uuid<OrderId>()
}

/**
 * The names of the conditions. The status has four conditions: `valid` (nearly all orders), `invalid` (whose index is
 * used only if the status is not a parameter), `revoked` (few orders) and `underWay` (all other statuses, few orders).
 * The kind has two conditions: `kind`, which has an index, and `usualKind` for the kind `default`.
 */
type Narrowing = Exclude<keyof OrderFilters, "kind" | "status"> | (typeof statuses)[number] | (typeof kinds)[number]

const narrowings: ReadonlyArray<Narrowing> = [
  "profile",
  "accountId",
  "valid",
  "invalid",
  "revoked",
  "underWay",
  "identifier",
  "identifierSuffix",
  "certSerial",
  "kind",
  "usualKind",
  "ends",
  "since",
  "until"
]
const statuses = ["valid", "invalid", "revoked", "underWay"] as const
const kinds = ["kind", "usualKind"] as const

const narrowed = ({ kind, status, ...others }: OrderFilters): { readonly [_ in Narrowing]?: unknown } => ({
  ...others,
  ...kind === undefined ? {} : { [kind === defaultKind ? "usualKind" : "kind"]: true },
  ...status === undefined ? {} : { [statuses.find((one) => one === status) ?? "underWay"]: true }
})

/** The index of serials begins with the profile. A search without a profile reads the index once for each profile. */
const anyProfile = `o.profile IN (SELECT profile FROM ${distinct("orders", "profile")})`

const usedIn = (used: ReadonlyArray<Narrowing>) => {
  const isUsed = (...names: ReadonlyArray<Narrowing>) => names.some((name) => used.includes(name))
  const isNamed = isUsed("identifier", "identifierSuffix", "certSerial")
  return {
    isUsed,
    isNamed,
    isFew: isNamed || (isUsed("accountId") && isUsed("invalid", "underWay")),
    // Of these conditions each selects fewer orders than a kind does.
    isOfKind: isUsed("kind") && !isNamed && !isUsed("accountId", "invalid", "revoked", "underWay")
  }
}

/** Returns the first column of the index that gives a list its order. */
const leaderOf = (used: ReadonlyArray<Narrowing>): "o.account_id" | "o.kind" | "o.profile" | undefined => {
  const { isFew, isOfKind, isUsed } = usedIn(used)
  if (isFew) return undefined
  if (isOfKind) return "o.kind"
  if (isUsed("accountId")) return "o.account_id"
  return isUsed("profile") && !isUsed("underWay") ? "o.profile" : undefined
}

/**
 * Returns whether the index that gives a list its order ends with the id. Ids begin with their time. The other indexes
 * end with the time.
 */
const isById = (used: ReadonlyArray<Narrowing>) => leaderOf(used) === "o.account_id" && !used.includes("revoked")

/**
 * Returns the conditions of a search. SQLite has no statistics, so the SQL marks the conditions that must not choose
 * the index. If few orders meet one condition, all other conditions are marked. If the only conditions are a profile
 * and a status, the weaker of these two is marked.
 */
const whereOf = (
  used: ReadonlyArray<Narrowing>,
  f: Fragments,
  leader?: ReturnType<typeof leaderOf>
): string => {
  const { aside, indexedBy, leads } = f
  const { isNamed, isOfKind, isUsed } = usedIn(used)
  const isNarrow = isNamed || isUsed("accountId")
  const equals = (column: string, value: string) => column === leader ? leads(column, value) : `${column} = ${value}`
  const subjects = isNamed || !isUsed("invalid") ? [] : ["account", "profile"] as const
  const failuresOf = subjects.find((subject) => isUsed(subject === "account" ? "accountId" : "profile"))
  const filterIf = (isWeak: boolean, column: string) => isWeak ? aside(column) : column
  const profile = filterIf(isOfKind || isUsed("underWay") || (isNarrow && !isUsed("certSerial")), "o.profile")
  const createdAt = filterIf(isNamed, "o.created_at")
  const noCertificate = unissued(f, "o.")
  const conditions: { readonly [F in Narrowing]: string } = {
    profile: equals(profile, ":profile"),
    accountId: equals(filterIf(isNamed, "o.account_id"), ":accountId"),
    valid: equals(filterIf(isOfKind || isNarrow || isUsed("profile"), "o.status"), "'valid'"),
    revoked: `${filterIf(isNamed, "o.revoked_at")} IS NOT NULL`,
    invalid: `${equals(filterIf(isNarrow && failuresOf === undefined, "o.status"), "'invalid'")}${noCertificate}`,
    underWay: `${equals(filterIf(isNarrow, "o.status"), ":status")}${noCertificate}`,
    identifier: `o.id IN (SELECT i.order_id FROM order_identifiers i WHERE ${nameConditions.identifier})`,
    identifierSuffix: `o.id IN (SELECT i.order_id FROM order_identifiers i WHERE ${nameConditions.identifierSuffix})`,
    certSerial: "o.cert_serial = :certSerial AND o.cert_serial IS NOT NULL",
    kind: `${equals(filterIf(!isOfKind, "o.kind"), ":kind")} AND o.kind IS NOT NULL`,
    usualKind: "o.kind IS NULL",
    ends: endsWithin(f),
    since: `${createdAt} >= :since${isUsed("accountId") && !isNamed ? " AND o.id >= :sinceId" : ""}`,
    until: `${createdAt} < :until`
  }
  const where = [
    ...used.map((name) => conditions[name]),
    ...isUsed("certSerial") && !isUsed("profile") ? [anyProfile] : []
  ].join(" AND ") || "1 = 1"
  return `${failuresOf === undefined ? "" : indexedBy(`orders_${failuresOf}_failed`)} WHERE ${where}`
}

/**
 * Returns the sort order. If few orders meet the conditions, PostgreSQL must sort them, so the sort order is one that
 * no index has. Otherwise PostgreSQL would expect these orders at the start of an index by time, and would read that
 * index to its end. The orders of an account are read from an index that has their order.
 */
const newestFirst = (used: ReadonlyArray<Narrowing>, { dialect, ledBy }: Fragments): string => {
  const isSorted = dialect === "postgres" && usedIn(used).isFew
  const order = isSorted ? "o.created_at + 0 DESC, o.id DESC" : "o.created_at DESC, o.id DESC"
  const leader = leaderOf(used)
  return leader === undefined ? order : ledBy(leader, isById(used) ? "o.id DESC" : order)
}

const pageStatement = perFilters(
  narrowings,
  (used) =>
    statement({
      name: "order_search",
      params: { ...filterColumns, limit: int, offset: int },
      row: listed,
      sql: (f) =>
        `SELECT ${selectOrder(more)} FROM orders o ${whereOf(used, f, leaderOf(used))}
       ORDER BY ${newestFirst(used, f)} LIMIT :limit OFFSET :offset`
    }),
  statuses,
  kinds
)

const countStatement = perFilters(
  narrowings,
  (used) =>
    statement({
      name: "order_search_count",
      params: filterColumns,
      row: { total: int },
      sql: (f) => `SELECT count(*) AS "total" FROM orders o ${whereOf(used, f)}`
    }),
  statuses,
  kinds
)

// The first comparison lets the engine read a range of an index. The OR alone would not.
const behindInTime = "o.created_at <= :beforeTime AND (o.created_at < :beforeTime OR o.id < :beforeId)"

const behindStatement = perFilters(
  narrowings,
  (used) =>
    statement({
      name: "order_search_behind",
      params: { ...filterColumns, beforeTime: int, beforeId: uuid<OrderId>(), limit: int },
      row: listed,
      sql: (f) =>
        `SELECT ${selectOrder(more)} FROM orders o
       ${whereOf(used, f, leaderOf(used))}
       AND ${isById(used) ? "o.id < :beforeId" : behindInTime}
       ORDER BY ${newestFirst(used, f)} LIMIT :limit`
    }),
  statuses,
  kinds
)

const listedStatement = statement({
  name: "order_listed",
  params: { ids: rows },
  row: listed,
  sql: ({ at, each }) =>
    `SELECT ${selectOrder(more)} FROM orders o WHERE o.id IN (SELECT ${at(0, "uuid")} FROM ${each(":ids")})
     ORDER BY o.created_at DESC, o.id DESC`
})

const byId = statement({
  name: "order_record",
  params: { id: uuid<OrderId>() },
  row: record,
  sql: (f) =>
    `SELECT ${selectOrder({ ...more, certPubkey: record.certPubkey })}, ${chainOf("o.", f)} AS "certificate"
     FROM orders o WHERE o.id = :id`
})

const replacedBy = statement({
  name: "order_replaced_by",
  params: { profile: name(), replaces: text() },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `SELECT id FROM orders WHERE profile = :profile AND replaces = :replaces AND replaces IS NOT NULL
       AND status <> 'invalid'`
})

const valuesOf = (filters: OrderFilters) =>
  ({
    profile: filters.profile ?? "",
    accountId: filters.accountId ?? nobody,
    status: filters.status ?? "valid",
    identifier: filters.identifier ?? "",
    ...reversedRange(filters.identifierSuffix ?? ""),
    certSerial: filters.certSerial ?? "",
    kind: filters.kind ?? "",
    ...endValues(filters.ends),
    since: filters.since ?? 0,
    until: filters.until ?? 0,
    sinceId: idBefore(filters.since ?? 0)
  }) as const

const ofKind = statement({
  name: "order_of_kind",
  params: { kind: name() },
  row: { id: uuid<OrderId>() },
  sql: () => `SELECT id FROM orders WHERE kind = :kind AND kind IS NOT NULL LIMIT 1`
})

const nobody = "00000000-0000-0000-0000-000000000000" as AccountId

/** Finds an order by its id, in any profile. */
export const findRecord = (id: OrderId) => lenientFirst(byId, { id })

/** Finds the order that replaces a certificate, by the certID of the replaced certificate. */
export const findSuccessor = (profile: string, certId: string) => first(replacedBy, { profile, replaces: certId })

/** Returns whether any order has this kind. The kind must not be `default`. */
export const hasKind = (kind: string) => Effect.map(first(ofKind, { kind }), (row) => row !== undefined)

/** Returns the name that a search looks for, if the search has no other filters. */
const onlyName = ({ identifier, identifierSuffix, ...others }: OrderFilters): orderNames.Named | undefined => {
  if (Object.values(others).some((one) => one !== undefined)) return undefined
  if (identifier !== undefined) return identifierSuffix === undefined ? { identifier } : undefined
  return identifierSuffix === undefined ? undefined : { identifierSuffix }
}

/** Returns a page of matching orders, newest first. */
export const search = (
  filters: OrderFilters,
  page: { readonly limit: number; readonly offset: number }
): Effect.Effect<ReadonlyArray<Row>, StorageFailed, Database> => {
  const named = onlyName(filters)
  return named === undefined
    ? lenient(pageStatement(narrowed(filters)), { ...valuesOf(filters), ...page })
    : Effect.flatMap(orderNames.newest(named, page), findListed)
}

// An order is valid if it has a certificate. The certificates are counted with two indexes.
const issuedOf = (profile: "" | "o.profile = :profile AND ") =>
  statement({
    name: "order_search_count",
    params: { profile: name() },
    row: { total: int },
    sql: () => {
      const count = (isRevoked: string) =>
        `(SELECT count(*) FROM orders o WHERE ${profile}o.certificate IS NOT NULL AND o.revoked_at ${isRevoked})`
      return `SELECT ${count("IS NULL")} + ${count("IS NOT NULL")} AS "total"`
    }
  })
const issuedAnywhere = issuedOf("")
const issuedAtProfile = issuedOf("o.profile = :profile AND ")

const countOnce = (filters: OrderFilters): Effect.Effect<number, StorageFailed, Database> => {
  const named = onlyName(filters)
  if (named !== undefined) return orderNames.count(named)
  const { accountId, certSerial, ends, identifier, identifierSuffix, kind, profile, since, status, until } = filters
  const isNarrow = [accountId, certSerial, ends, identifier, identifierSuffix, kind].some((one) => one !== undefined)
  const total = (row: { readonly total: number } | undefined) => row?.total ?? 0
  if (status !== "valid" || isNarrow) {
    return Effect.map(first(countStatement(narrowed(filters)), valuesOf(filters)), total)
  }
  if (since === undefined && until === undefined) {
    const issued = profile === undefined ? issuedAnywhere : issuedAtProfile
    return Effect.map(first(issued, { profile: profile ?? "" }), total)
  }
  // No index contains the status and the time together. But all orders of the time can be counted from one index, and
  // few of them have another status.
  const others = orderStatuses.filter((one) => one !== "valid")
  return Effect.zipWith(
    countOnce({ ...filters, status: undefined }),
    Effect.forEach(others, (other) => countOnce({ ...filters, status: other })),
    // Orders may change their status between the counts.
    (all, counts) => Math.max(0, counts.reduce((left, many) => left - many, all))
  )
}

/** Returns how many orders match. The number may be slightly out of date ({@link keptTotal}). */
export const countMatches = (filters: OrderFilters) => keptTotal("order_search_count", filters, countOnce(filters))

/** Returns the matching orders that follow a given order, newest first. */
export const behind = (
  filters: OrderFilters,
  before: { readonly beforeTime: number; readonly beforeId: OrderId; readonly limit: number }
) => lenient(behindStatement(narrowed(filters)), { ...valuesOf(filters), ...before })

/** Returns the orders with these ids, newest first. */
export const findListed = (ids: ReadonlyArray<OrderId>) =>
  ids.length === 0
    ? Effect.succeed<ReadonlyArray<Row>>([])
    : lenient(listedStatement, { ids: ids.map((one) => [packedUuid(one)]) })
