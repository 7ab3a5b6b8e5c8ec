import { Effect } from "effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { int, nullable, packedUuid, rows, text, uuid } from "../../kernel/sql/Column.ts"
import { all, first } from "../../kernel/sql/Database.ts"
import { distinct } from "../../kernel/sql/Distinct.ts"
import type { Fragments } from "../../kernel/sql/Statement.ts"
import { select, statement } from "../../kernel/sql/Statement.ts"
import { orderColumns } from "./Orders.ts"

/* Certificates that are issued, unrevoked and soon at their end, over every profile or one (docs/decisions/expiring.md). */

/** The orders of every profile, one after the other. */
const everyProfile = `${distinct("orders", "profile")} JOIN orders o ON o.profile = p.profile`

const living = (alias: string) => `${alias}.certificate IS NOT NULL AND ${alias}.revoked_at IS NULL`

const window = `${living("o")} AND o.cert_not_after > :now AND o.cert_not_after <= :until`

const perReach = <S>(make: (from: string, where: string) => S) => {
  const [every, one] = [make(everyProfile, window), make("orders o", `o.profile = :profile AND ${window}`)]
  return (profile: string | undefined): S => profile === undefined ? every : one
}

const windowColumns = { profile: text(), now: int, until: int }

const countStatement = perReach((from, where) =>
  statement({
    name: "expiring_count",
    params: windowColumns,
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM ${from} WHERE ${where}`
  })
)

/** The name of `o` that the fewest orders have, as far as counting goes: where one is many orders', another is not. */
const rarestName = `(SELECT f.name FROM order_identifiers f WHERE f.order_id = o.id
   ORDER BY (SELECT count(*) FROM (SELECT 1 FROM order_identifiers c WHERE c.profile = o.profile AND c.name = f.name
     LIMIT 32) AS few), f.name LIMIT 1)`

/**
 * Certificates `s` of the same account that have every name of `o` and end later. They are met by a name, and each by its
 * key: CROSS JOIN keeps SQLite, which knows of no statistics, from walking through the account's orders instead.
 */
const coverings = `order_identifiers n CROSS JOIN orders s
   WHERE s.id = n.order_id AND n.profile = o.profile AND n.name = ${rarestName}
     AND s.account_id = o.account_id AND ${living("s")} AND s.cert_not_after > o.cert_not_after
     AND NOT EXISTS (SELECT 1 FROM order_identifiers i WHERE i.order_id = o.id AND NOT EXISTS
       (SELECT 1 FROM order_identifiers j WHERE j.order_id = s.id AND j.name = i.name))`

// Newest first where the index gives them so: one that is renewed often is then decided by the first order met.
const isCovered = ({ dialect }: Fragments): string =>
  `CASE WHEN EXISTS (SELECT 1 FROM ${coverings}${
    dialect === "sqlite" ? " ORDER BY n.order_id DESC LIMIT 1" : ""
  }) THEN 1 ELSE 0 END`

const place = {
  id: uuid<OrderId>(),
  profile: text(),
  accountId: uuid<AccountId>(),
  notAfter: int,
  certSerial: nullable(text())
}

const placesStatement = perReach((from, where) =>
  statement({
    name: "expiring_places",
    params: { ...windowColumns, afterTime: int, afterId: uuid<OrderId>(), limit: int },
    row: { ...place, isCovered: int },
    // Successors are looked for outside of what is sorted: for the rows of this page alone.
    sql: (f) =>
      `SELECT o.id AS "id", o.profile AS "profile", o.account_id AS "accountId", o.cert_not_after AS "notAfter",
         o.cert_serial AS "certSerial", ${isCovered(f)} AS "isCovered" FROM (
           SELECT o.id FROM ${from}
           WHERE ${where} AND (o.cert_not_after > :afterTime OR (o.cert_not_after = :afterTime AND o.id > :afterId))
           ORDER BY o.cert_not_after, o.id LIMIT :limit) page CROSS JOIN orders o WHERE o.id = page.id
       ORDER BY o.cert_not_after, o.id`
  })
)

const successorStatement = statement({
  name: "expiring_successor",
  params: { id: uuid<OrderId>() },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `SELECT (SELECT s.id FROM ${coverings} ORDER BY s.cert_not_after DESC, s.id DESC LIMIT 1) AS "id"
     FROM orders o WHERE o.id = :id AND EXISTS (SELECT 1 FROM ${coverings})`
})

const certificate = {
  id: orderColumns.id,
  profile: orderColumns.profile,
  accountId: orderColumns.accountId,
  identifiers: orderColumns.identifiers,
  certificate: nullable(text()),
  certSerial: nullable(text()),
  certNotAfter: nullable(int)
}

const findStatement = statement({
  name: "expiring_find",
  params: { id: uuid<OrderId>() },
  row: certificate,
  sql: () => `SELECT ${select(certificate, "o")} FROM orders o WHERE o.id = :id AND ${living("o")}`
})

/** An order of `account` that has a certificate ending behind `notAfter` and was ordered in place of `certId`. */
const replacement = (account: string, certId: string, notAfter: string) =>
  `FROM orders s WHERE s.profile = :profile AND s.replaces = ${certId} AND s.replaces IS NOT NULL
     AND s.status <> 'invalid' AND s.account_id = ${account} AND ${living("s")} AND s.cert_not_after > ${notAfter}`

const replacementStatement = statement({
  name: "expiring_replacement",
  params: { profile: text(), accountId: uuid<AccountId>(), replaces: text(), notAfter: int },
  row: { id: uuid<OrderId>() },
  sql: () => `SELECT s.id AS "id" ${replacement(":accountId", ":replaces", ":notAfter")}`
})

// A certID is two parts with a dot between; the next first part is behind everything that begins with this one and the dot.
const authoritiesStatement = statement({
  name: "expiring_authorities",
  params: { profile: text() },
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

// `wanted` are a number, a certID, the account and an end.
const replacedStatement = statement({
  name: "expiring_replaced",
  params: { profile: text(), wanted: rows },
  row: { number: int },
  sql: ({ at, each }) =>
    `SELECT ${at(0, "int")} AS "number" FROM ${each(":wanted")}
     WHERE EXISTS (SELECT 1 ${replacement(at(2, "uuid"), at(1, "text"), at(3, "int"))})`
})

/** What is looked at: one profile or every one, and ends after `now` up to `until` (epoch seconds). */
export interface Window {
  readonly profile?: string | undefined
  readonly now: number
  readonly until: number
}

/** A certificate of the window: its order and its end, and whether an unrevoked one covers its names longer. */
export type Place = Effect.Effect.Success<ReturnType<typeof places>>[number]

/** An unrevoked certificate with its order. */
export type Living = NonNullable<Effect.Effect.Success<ReturnType<typeof find>>>

const valuesOf = ({ now, profile = "", until }: Window) => ({ profile, now, until })

/** How many certificates end in the window. */
export const countEnding = (window: Window) =>
  Effect.map(first(countStatement(window.profile), valuesOf(window)), (row) => row?.total ?? 0)

/** The next certificates of the window behind one, soonest first, the order's id as tie-break. */
export const places = (window: Window, after: { readonly notAfter: number; readonly id: OrderId }, limit: number) =>
  all(placesStatement(window.profile), {
    // What is behind the page before is not read again: ends before that one's are out of the range of the index.
    ...valuesOf({ ...window, now: Math.max(window.now, after.notAfter - 1) }),
    afterTime: after.notAfter,
    afterId: after.id,
    limit
  })

/** The order of an unrevoked certificate of the same account that has every name of one and ends later; the last of them. */
export const findCovering = (id: OrderId) => first(successorStatement, { id })

/** The unrevoked certificate of an order. */
export const find = (id: OrderId) => first(findStatement, { id })

/** The order of an unrevoked certificate that ends later and was ordered in place of one, by that one's certID. */
export const findReplacement = (
  replaced: { readonly profile: string; readonly accountId: AccountId; readonly notAfter: number },
  certId: string
) => first(replacementStatement, { ...replaced, replaces: certId })

/** The first parts of all certIDs that orders of a profile were placed in place of: one for each CA. */
export const authorities = (profile: string) =>
  Effect.map(all(authoritiesStatement, { profile }), (found) => found.map(({ authority }) => authority))

/** Which of these numbered certificates of a profile {@link findReplacement} would find something for. */
export const replaced = (
  profile: string,
  wanted: ReadonlyArray<readonly [number: number, certId: string, account: AccountId, notAfter: number]>
) =>
  Effect.map(
    all(replacedStatement, {
      profile,
      wanted: wanted.map(([number, certId, account, notAfter]) => [number, certId, packedUuid(account), notAfter])
    }),
    (found) => new Set(found.map(({ number }) => number))
  )
