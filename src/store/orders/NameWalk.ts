import * as Effect from "effect/Effect"
import { defaultKind } from "../../domain/CertificateKind.ts"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import type { OrderFilterWord } from "../../domain/Order.ts"
import { int, name, text, uuid } from "../../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { first, lenient } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { statement } from "../../engine/sql/Statement.ts"
import type { EndRange } from "./EndRange.ts"
import { endColumns, endsWithin, endValues } from "./EndRange.ts"

/*
 * Searches orders for a text in their names if no index can be used. The walk goes from the newest order to older
 * orders, one stretch at a time, and the database does all the comparing (docs/contribute/decisions/data-model.md,
 * "Names that contain a text").
 */

/**
 * How a name is compared with the text. `contains` means that the name contains the text. `endsWith` means that the
 * name ends with the text, and that the text begins with a whole label.
 */
export type Comparison = "contains" | "endsWith"

/** What a walk searches for. The other filters reduce the matches. Times are epoch seconds; `until` is exclusive. */
export interface Sought {
  readonly comparison: Comparison
  readonly text: string
  readonly profile?: string | undefined
  readonly accountId?: AccountId | undefined
  readonly status?: OrderFilterWord | undefined
  readonly kind?: string | undefined
  readonly ends?: EndRange | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/**
 * What a walk reads: the orders of an account, the orders of a time span, or otherwise all names in the order of their
 * key. The key of the names begins with the time and contains everything that is compared.
 */
type Source = "account" | "time" | "names"

/**
 * A part of a walk: it begins at one place and ends before another. A place is the id of an order or, in a time span, a
 * time in epoch seconds.
 */
export interface Stretch {
  readonly from: OrderId
  readonly before: OrderId
  readonly fromTime: number
  readonly beforeTime: number
}

const compared = (comparison: Comparison, { dialect }: Fragments): string => {
  const isPostgres = dialect === "postgres"
  if (comparison === "contains") return `${isPostgres ? "strpos" : "instr"}(i.name, :text) > 0`
  const end = isPostgres ? "right(i.name, CAST(:size AS INTEGER))" : "substr(i.name, -CAST(:size AS INTEGER))"
  return `(i.name = :text OR ${end} = :dotted)`
}

const columns = {
  text: text(),
  dotted: text(),
  size: int,
  profile: name(),
  accountId: uuid<AccountId>(),
  status: text<OrderFilterWord>(),
  kind: name(),
  ...endColumns,
  since: int,
  until: int,
  from: uuid<OrderId>(),
  before: uuid<OrderId>(),
  fromTime: int,
  beforeTime: int
}

const narrowings = ["profile", "accountId", "status", "revoked", "kind", "usualKind", "ends", "since", "until"] as const
const statuses = ["status", "revoked"] as const
const kinds = ["kind", "usualKind"] as const
type Used = ReadonlyArray<(typeof narrowings)[number]>

/** Returns the source of a walk. */
export const sourceOf = ({ accountId, since, until }: Pick<Sought, "accountId" | "since" | "until">): Source =>
  accountId !== undefined ? "account" : since !== undefined || until !== undefined ? "time" : "names"

const sourceUsing = (used: Used): Source =>
  used.includes("accountId") ? "account" : used.includes("since") || used.includes("until") ? "time" : "names"

/** Returns SQL for the matching orders of a stretch. */
const met = (f: Fragments, used: Used, comparison: Comparison): string => {
  const source = sourceUsing(used)
  // The range of the stretch decides which index is used.
  const others: { readonly [F in Used[number]]: string } = {
    profile: `${f.aside("o.profile")} = :profile`,
    accountId: "o.account_id = :accountId",
    status: `${f.aside("o.status")} = :status`,
    revoked: `${f.aside("o.revoked_at")} IS NOT NULL`,
    kind: `${f.aside("o.kind")} = :kind`,
    usualKind: `${f.aside("o.kind")} IS NULL`,
    ends: endsWithin(f),
    since: `${f.aside("o.created_at")} >= :since`,
    until: `${f.aside("o.created_at")} < :until`
  }
  const conditions = used.map((name) => others[name])
  if (source === "names") {
    const order = conditions.length === 0
      ? []
      : [`EXISTS (SELECT 1 FROM orders o WHERE o.id = i.order_id AND ${conditions.join(" AND ")})`]
    return `FROM order_identifiers i WHERE ${
      ["i.order_id < :before", "i.order_id >= :from", compared(comparison, f), ...order].join(" AND ")
    } GROUP BY i.order_id`
  }
  const range = source === "account"
    ? "o.id < :before AND o.id >= :from"
    : "o.created_at < :beforeTime AND o.created_at >= :fromTime"
  return `FROM orders o WHERE ${[range, ...conditions].join(" AND ")}
    AND EXISTS (SELECT 1 FROM order_identifiers i WHERE i.order_id = o.id AND ${compared(comparison, f)})`
}

const perSought = <S>(make: (used: Used, comparison: Comparison) => S) => {
  const every = {
    contains: perFilters(narrowings, (used) => make(used, "contains"), statuses, kinds),
    endsWith: perFilters(narrowings, (used) => make(used, "endsWith"), statuses, kinds)
  }
  return ({ comparison, kind, status, ...filters }: Sought) =>
    every[comparison]({
      ...filters,
      ...status === "revoked" ? { revoked: true } : { status },
      ...kind === defaultKind ? { usualKind: true } : { kind }
    })
}

const id = (used: Used) => sourceUsing(used) === "names" ? "i.order_id" : "o.id"

/**
 * Returns the sort order. The range of the stretch decides which index is used. For an account, `+ 0` prevents that all
 * orders are read in the order of their times.
 */
const newestFirst = (used: Used): string => {
  const source = sourceUsing(used)
  return source === "names" ? "i.order_id DESC" : `o.created_at${source === "account" ? " + 0" : ""} DESC, o.id DESC`
}

const matchesStatement = perSought((used, comparison) =>
  statement({
    name: "order_walk_matches",
    params: { ...columns, limit: int, offset: int },
    row: { id: uuid<OrderId>() },
    sql: (f) =>
      `SELECT ${id(used)} AS "id" ${met(f, used, comparison)} ORDER BY ${newestFirst(used)} LIMIT :limit OFFSET :offset`
  })
)

const countStatement = perSought((used, comparison) =>
  statement({
    name: "order_walk_count",
    params: columns,
    row: { total: int },
    sql: (f) => `SELECT count(*) AS "total" FROM (SELECT ${id(used)} ${met(f, used, comparison)}) AS met`
  })
)

const endOfNamesStatement = statement({
  name: "order_walk_end",
  params: { before: uuid<OrderId>(), skip: int },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `SELECT i.order_id AS "id" FROM order_identifiers i WHERE i.order_id < :before
     ORDER BY i.order_id DESC LIMIT 1 OFFSET :skip`
})

const endOfAccountStatement = statement({
  name: "order_walk_end_of_account",
  params: { before: uuid<OrderId>(), skip: int, accountId: uuid<AccountId>() },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `SELECT o.id AS "id" FROM orders o WHERE o.account_id = :accountId AND o.id < :before
     ORDER BY o.id DESC LIMIT 1 OFFSET :skip`
})

const endOfTimeStatement = statement({
  name: "order_walk_end_of_time",
  params: { beforeTime: int, skip: int },
  row: { createdAt: int },
  sql: () =>
    `SELECT o.created_at AS "createdAt" FROM orders o WHERE o.created_at < :beforeTime
     ORDER BY o.created_at DESC LIMIT 1 OFFSET :skip`
})

// The names are read in the order of the index, so that no engine first collects the whole range.
const endsStatement = statement({
  name: "order_names_ending",
  params: { reversed: text(), belowFrom: text(), belowTo: text(), limit: int },
  row: { total: int },
  sql: () => {
    const count = (where: string) =>
      `(SELECT count(*) FROM (SELECT 1 FROM order_identifiers i WHERE ${where} ORDER BY i.name_rev LIMIT :limit) AS few)`
    return `SELECT ${count("i.name_rev = :reversed")}
      + ${count("i.name_rev >= :belowFrom AND i.name_rev < :belowTo")} AS "total"`
  }
})

/** Returns a name spelled backwards, and the range of the names below it. */
export const reversedRange = (name: string) => {
  const reversed = Array.from(name).toReversed().join("")
  return { reversed, belowFrom: `${reversed}.`, belowTo: `${reversed}/` } // the character that follows the dot
}

const nobody = "00000000-0000-0000-0000-000000000000" as AccountId

const valuesOf = (
  { accountId = nobody, ends, kind = "", profile = "", since = 0, status = "valid", text: sought, until = 0 }: Sought
) =>
  ({
    text: sought,
    dotted: `.${sought}`,
    size: sought.length + 1,
    accountId,
    kind,
    ...endValues(ends),
    profile,
    status,
    since,
    until
  }) as const

/** Returns the matching orders of a stretch, newest first. */
export const matches = (sought: Sought, stretch: Stretch, page: { readonly limit: number; readonly offset: number }) =>
  Effect.map(
    lenient(matchesStatement(sought), { ...valuesOf(sought), ...stretch, ...page }),
    (rows) => rows.map((row) => row.id)
  )

/** Counts the matching orders of a stretch. */
export const countMatches = (sought: Sought, stretch: Stretch) =>
  Effect.map(first(countStatement(sought), { ...valuesOf(sought), ...stretch }), (row) => row?.total ?? 0)

/**
 * Returns the stretch that ends before these places. It has about `size` names or, for an account or a time span, about
 * `size` orders. Returns `undefined` if fewer names or orders are left.
 */
export const stretchBefore = (
  sought: Sought,
  { before, beforeTime }: Pick<Stretch, "before" | "beforeTime">,
  size: number
): Effect.Effect<Stretch | undefined, StorageFailed, Database> => {
  const source = sourceOf(sought)
  if (source === "time") {
    return Effect.map(
      first(endOfTimeStatement, { beforeTime, skip: size }),
      (row) => row === undefined ? undefined : { from: before, before, fromTime: row.createdAt, beforeTime }
    )
  }
  const found = source === "names"
    ? first(endOfNamesStatement, { before, skip: size })
    : first(endOfAccountStatement, { before, skip: size, accountId: sought.accountId ?? nobody })
  return Effect.map(
    found,
    (row) => row === undefined ? undefined : { from: row.id, before, fromTime: beforeTime, beforeTime }
  )
}

/** Counts the names that end with this text, up to `limit`. */
export const countEnding = (name: string, limit: number) =>
  Effect.map(first(endsStatement, { ...reversedRange(name), limit }), (row) => row?.total ?? 0)
