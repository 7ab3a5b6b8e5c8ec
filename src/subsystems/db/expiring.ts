import { Effect } from "effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { int, nullable, text, uuid } from "./Column.ts"
import { all, first } from "./Database.ts"
import { orderColumns } from "./orders.ts"
import { select, statement } from "./Statement.ts"

/* Certificates that are issued, unrevoked and soon at their end, over every profile or one ("Expiry digest" of
   decisions/notifications.md). */

/** Every profile that has orders, met by jumping from one to the next in the index. */
const everyProfile = `(WITH RECURSIVE met(profile) AS (
    SELECT min(profile) FROM orders
    UNION ALL SELECT (SELECT min(n.profile) FROM orders n WHERE n.profile > met.profile) FROM met
      WHERE met.profile IS NOT NULL)
  SELECT profile FROM met WHERE profile IS NOT NULL) p JOIN orders o ON o.profile = p.profile`

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

/** A certificate of the same account that has every name of `o` and ends later; the one that ends last. */
const successor = `(SELECT s.id FROM order_identifiers n JOIN orders s ON s.id = n.order_id
   WHERE n.profile = o.profile AND n.name = (SELECT min(f.name) FROM order_identifiers f WHERE f.order_id = o.id)
     AND s.account_id = o.account_id AND ${living("s")} AND s.cert_not_after > o.cert_not_after
     AND NOT EXISTS (SELECT 1 FROM order_identifiers i WHERE i.order_id = o.id AND NOT EXISTS
       (SELECT 1 FROM order_identifiers j WHERE j.order_id = s.id AND j.name = i.name))
   ORDER BY s.cert_not_after DESC, s.id DESC LIMIT 1)`

const place = { id: uuid<OrderId>(), notAfter: int }

const placesStatement = perReach((from, where) =>
  statement({
    name: "expiring_places",
    params: { ...windowColumns, afterTime: int, afterId: uuid<OrderId>(), limit: int },
    row: { ...place, successorId: nullable(uuid<OrderId>()) },
    // The successor is looked for outside of what is sorted: for the rows of this page alone.
    sql: () =>
      `SELECT o.id AS "id", o.cert_not_after AS "notAfter", ${successor} AS "successorId" FROM (
         SELECT o.id FROM ${from}
         WHERE ${where} AND (o.cert_not_after > :afterTime OR (o.cert_not_after = :afterTime AND o.id > :afterId))
         ORDER BY o.cert_not_after, o.id LIMIT :limit) page JOIN orders o ON o.id = page.id
       ORDER BY o.cert_not_after, o.id`
  })
)

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

const replacementStatement = statement({
  name: "expiring_replacement",
  params: { profile: text(), accountId: uuid<AccountId>(), replaces: text(), notAfter: int },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `SELECT o.id AS "id" FROM orders o
     WHERE o.profile = :profile AND o.replaces = :replaces AND o.replaces IS NOT NULL AND o.status <> 'invalid'
       AND o.account_id = :accountId AND ${living("o")} AND o.cert_not_after > :notAfter`
})

/** What is looked at: one profile or every one, and ends after `now` up to `until` (epoch seconds). */
export interface Window {
  readonly profile?: string | undefined
  readonly now: number
  readonly until: number
}

/** A certificate of the window: its order, its end, and the order of an unrevoked one that covers its names longer. */
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
    ...valuesOf(window),
    afterTime: after.notAfter,
    afterId: after.id,
    limit
  })

/** The unrevoked certificate of an order. */
export const find = (id: OrderId) => first(findStatement, { id })

/** The order of an unrevoked certificate that ends later and was ordered in place of one, by that one's certID. */
export const findReplacement = (
  replaced: { readonly profile: string; readonly accountId: AccountId; readonly notAfter: number },
  certId: string
) => first(replacementStatement, { ...replaced, replaces: certId })
