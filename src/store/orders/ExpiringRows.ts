import * as Effect from "effect/Effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { int, name, nullable, packedUuid, rows, text, uuid } from "../../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { distinct } from "../../engine/sql/Distinct.ts"
import { keptTotal } from "../../engine/sql/KeptCounts.ts"
import { all, first, lenient } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { select, statement } from "../../engine/sql/Statement.ts"
import { nameCountOf } from "./NameCount.ts"
import { orderColumns } from "./OrderRows.ts"
import { chain, chainOf } from "./StoredChain.ts"

/*
 * Finds certificates that expire soon and are not revoked, of one profile or of every profile
 * (docs/contribute/decisions/expiring.md).
 */

/** SQL for the orders of every profile. The profiles are read one after the other. */
const everyProfile = `${distinct("orders", "profile")} JOIN orders o ON o.profile = p.profile`

const living = (alias: string) => `${alias}.certificate IS NOT NULL AND ${alias}.revoked_at IS NULL`

const window = `${living("o")} AND o.cert_not_after > :now AND o.cert_not_after <= :until`

const perReach = <S>(make: (from: string, where: string) => S) => {
  const [every, one] = [make(everyProfile, window), make("orders o", `o.profile = :profile AND ${window}`)]
  return (profile: string | undefined): S => profile === undefined ? every : one
}

const windowColumns = { profile: name(), now: int, until: int }

const countStatement = perReach((from, where) =>
  statement({
    name: "expiring_count",
    params: windowColumns,
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM ${from} WHERE ${where}`
  })
)

/** SQL for the name of `o` that the fewest orders have. At most 32 orders are counted for each name. */
const rarestOfSome = `(SELECT f.name FROM order_identifiers f WHERE f.order_id = o.id
   ORDER BY (SELECT count(*) FROM (SELECT 1 FROM order_identifiers c WHERE c.profile = o.profile AND c.name = f.name
     LIMIT 32) AS few), f.name LIMIT 1)`

/**
 * SQL for the same name that {@link rarestOfSome} selects. If the order has only one name, as most orders have, nothing
 * is counted.
 */
const rarestName = `(SELECT CASE WHEN count(*) = 1 THEN min(g.name) ELSE ${rarestOfSome} END
   FROM order_identifiers g WHERE g.order_id = o.id)`

/**
 * Returns SQL for the certificates `s` of the same account that have every name of `o` and expire later. They are found
 * by one name, and then each is looked up by its key. SQLite has no statistics, and would read all orders of the
 * account instead; CROSS JOIN prevents that.
 */
const coverings = ({ aside }: Fragments): string =>
  `order_identifiers n CROSS JOIN orders s
   WHERE s.id = n.order_id AND n.profile = o.profile AND n.name = ${rarestName}
     AND ${aside("s.account_id")} = o.account_id AND ${living("s")} AND s.cert_not_after > o.cert_not_after
     AND (SELECT count(*) FROM order_identifiers k WHERE k.order_id = o.id) = ${nameCountOf("o")}
     AND NOT EXISTS (SELECT 1 FROM order_identifiers i WHERE i.order_id = o.id AND NOT EXISTS
       (SELECT 1 FROM order_identifiers j WHERE j.order_id = s.id AND j.name = i.name))`

// The newest certificate comes first, so that reading one order is enough even if a certificate was renewed often. This
// is not an EXISTS, because PostgreSQL would ignore the sort order within it.
const isCovered = (f: Fragments): string =>
  `COALESCE((SELECT 1 FROM ${coverings(f)} ORDER BY n.order_id DESC LIMIT 1), 0)`

const place = {
  id: uuid<OrderId>(),
  profile: name(),
  accountId: uuid<AccountId>(),
  notAfter: int,
  certSerial: nullable(name())
}

// At most one page of each profile is read. Otherwise the whole window would be sorted for each page.
const pageOf = (from: string, { dialect }: Fragments): string => {
  const one = (profile: string) =>
    `SELECT w.id FROM orders w WHERE w.profile = ${profile} AND ${living("w")}
       AND w.cert_not_after > :now AND w.cert_not_after <= :until
       AND (w.cert_not_after > :afterTime OR (w.cert_not_after = :afterTime AND w.id > :afterId))
     ORDER BY w.cert_not_after, w.id LIMIT :limit`
  if (from !== everyProfile) return one(":profile")
  return dialect === "postgres"
    ? `SELECT every.id FROM ${distinct("orders", "profile")} CROSS JOIN LATERAL (${one("p.profile")}) AS every`
    : `SELECT o.id FROM ${distinct("orders", "profile")} CROSS JOIN orders o WHERE o.id IN (${one("p.profile")})`
}

const placesStatement = perReach((from) =>
  statement({
    name: "expiring_places",
    params: { ...windowColumns, afterTime: int, afterId: uuid<OrderId>(), limit: int },
    row: { ...place, isCovered: int },
    // The search for successors is outside the sorted query, so that it runs only for the rows of one page.
    sql: (f) =>
      `SELECT o.id AS "id", o.profile AS "profile", o.account_id AS "accountId", o.cert_not_after AS "notAfter",
         o.cert_serial AS "certSerial", ${isCovered(f)} AS "isCovered" FROM (
           SELECT o.id FROM (${pageOf(from, f)}) first CROSS JOIN orders o WHERE o.id = first.id
           ORDER BY o.cert_not_after, o.id LIMIT :limit) page CROSS JOIN orders o WHERE o.id = page.id
       ORDER BY o.cert_not_after, o.id`
  })
)

const coveringStatement = statement({
  name: "expiring_covering",
  params: { ids: rows },
  row: { id: uuid<OrderId>(), other: nullable(uuid<OrderId>()) },
  sql: (f) =>
    `SELECT o.id AS "id", (SELECT s.id FROM ${
      coverings(f)
    } ORDER BY s.cert_not_after DESC, s.id DESC LIMIT 1) AS "other"
     FROM orders o WHERE o.id IN (SELECT ${f.at(0, "uuid")} FROM ${f.each(":ids")})`
})

const certified = {
  id: orderColumns.id,
  profile: orderColumns.profile,
  accountId: orderColumns.accountId,
  identifiers: orderColumns.identifiers,
  kind: orderColumns.kind,
  certSerial: nullable(name()),
  certNotAfter: nullable(int)
}

const findStatement = statement({
  name: "expiring_find",
  params: { ids: rows },
  row: { ...certified, certificate: nullable(chain) },
  sql: (f) =>
    `SELECT ${select(certified, "o")}, ${chainOf("o.", f)} AS "certificate" FROM orders o
     WHERE o.id IN (SELECT ${f.at(0, "uuid")} FROM ${f.each(":ids")}) AND ${living("o")}`
})

// A certID has two parts with a dot between them. The character after the dot is the slash, so every certID with a
// given first part sorts before this part followed by a slash.
const authoritiesStatement = statement({
  name: "expiring_authorities",
  params: { profile: name() },
  row: { authority: text() },
  sql: ({ dialect }) => {
    const next = (behind: string) =>
      `SELECT min(r.replaces) FROM orders r
       WHERE r.profile = :profile AND r.replaces IS NOT NULL AND r.status <> 'invalid'${behind}`
    const authority = dialect === "postgres"
      ? "split_part(met.replaces, '.', 1)"
      : "substr(met.replaces, 1, instr(met.replaces, '.') - 1)"
    return `SELECT ${authority} AS "authority" FROM (WITH RECURSIVE met(replaces) AS (${next("")}
        UNION ALL SELECT (${next(` AND r.replaces > ${authority} || '/'`)}) FROM met WHERE met.replaces IS NOT NULL)
      SELECT replaces FROM met WHERE replaces IS NOT NULL) met`
  }
})

// Each element of `wanted` has a number, a certID, and the account and expiry of the certificate.
const replacedStatement = statement({
  name: "expiring_replaced",
  params: { profile: name(), wanted: rows },
  row: { number: int, other: uuid<OrderId>() },
  sql: ({ at, each }) =>
    `SELECT ${at(0, "int")} AS "number", s.id AS "other" FROM ${each(":wanted")} CROSS JOIN orders s
     WHERE s.profile = :profile AND s.replaces = ${at(1, "text")} AND s.replaces IS NOT NULL
       AND s.status <> 'invalid' AND s.account_id = ${at(2, "uuid")} AND ${living("s")}
       AND s.cert_not_after > ${at(3, "int")}`
})

/**
 * Which certificates a window contains: those of one profile or of every profile that expire after `now` and at or
 * before `until` (epoch seconds).
 */
export interface Window {
  readonly profile?: string | undefined
  readonly now: number
  readonly until: number
}

/**
 * A certificate of the window: its order, its expiry, and whether another, unrevoked certificate has all its names and
 * expires later.
 */
export type Place = Effect.Success<ReturnType<typeof places>>[number]

/** An unrevoked certificate with its order. */
export type Living = Effect.Success<
  ReturnType<typeof all<typeof findStatement.params, typeof findStatement.row>>
>[number]

const valuesOf = ({ now, profile = "", until }: Window) => ({ profile, now, until })

/** Counts the certificates that expire in the window. The number may be slightly out of date ({@link keptTotal}). */
export const countEnding = (window: Window) =>
  keptTotal(
    "expiring_count",
    // The count is kept under the length of the window instead of its bounds, because a window that begins a little
    // later contains nearly the same certificates.
    { profile: window.profile, seconds: window.until - window.now },
    Effect.map(first(countStatement(window.profile), valuesOf(window)), (row) => row?.total ?? 0)
  )

/**
 * Returns the certificates of the window that follow a given certificate, sorted by expiry, then by the id of the
 * order.
 */
export const places = (window: Window, after: { readonly notAfter: number; readonly id: OrderId }, limit: number) =>
  lenient(placesStatement(window.profile), {
    // Earlier pages are not read again, because their expiry times are outside the range that is read from the index.
    ...valuesOf({ ...window, now: Math.max(window.now, after.notAfter - 1) }),
    afterTime: after.notAfter,
    afterId: after.id,
    limit
  })

const packed = (ids: ReadonlyArray<OrderId>) => ({ ids: ids.map((id) => [packedUuid(id)]) })

/**
 * For each given order, finds another order of the same account with an unrevoked certificate that has every name of
 * the given order and expires later. If there are several, the one that expires last is returned. The results are keyed
 * by the id of the given order.
 */
export const coveringsOf = (
  ids: ReadonlyArray<OrderId>
): Effect.Effect<ReadonlyMap<OrderId, OrderId>, StorageFailed, Database> =>
  ids.length === 0 ? Effect.succeed(new Map()) : Effect.map(
    lenient(coveringStatement, packed(ids)),
    (found) => new Map(found.flatMap(({ id, other }) => other === undefined ? [] : [[id, other]]))
  )

/** Returns the unrevoked certificates of these orders, by the id of the order. */
export const find = (
  ids: ReadonlyArray<OrderId>
): Effect.Effect<ReadonlyMap<OrderId, Living>, StorageFailed, Database> =>
  ids.length === 0 ? Effect.succeed(new Map()) : Effect.map(
    lenient(findStatement, packed(ids)),
    (found) => new Map(found.map((order) => [order.id, order]))
  )

/** Returns the first parts of all certIDs that orders of a profile claim to replace. Each CA has one first part. */
export const authorities = (profile: string) =>
  Effect.map(lenient(authoritiesStatement, { profile }), (found) => found.map(({ authority }) => authority))

/** A certificate that may have been replaced. The caller chooses its `number`. */
export interface Replaceable {
  readonly number: number
  readonly certId: string
  readonly accountId: AccountId
  /** The expiry of the certificate, in epoch seconds. */
  readonly notAfter: number
}

/**
 * Returns the numbers of those certificates of a profile that were replaced, each with the order that replaced the
 * certificate. This order names the certID, belongs to the same account, and has an unrevoked certificate that expires
 * later.
 */
export const replaced = (
  profile: string,
  wanted: ReadonlyArray<Replaceable>
): Effect.Effect<ReadonlyMap<number, OrderId>, StorageFailed, Database> =>
  wanted.length === 0 ? Effect.succeed(new Map()) : Effect.map(
    lenient(replacedStatement, {
      profile,
      wanted: wanted.map((one) => [one.number, one.certId, packedUuid(one.accountId), one.notAfter])
    }),
    (found) => new Map(found.map(({ number, other }) => [number, other]))
  )
