import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { int, name, nullable, packedUuid, rows, uuid } from "../../engine/sql/Column.ts"
import { all, first, lenient } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* Deletes orders whose certificate expired long ago. Orders with revoked certificates have an index of their own. */

const perRevoked = <S>(make: (revoked: string) => S) => {
  const [unrevoked, revoked] = [make("IS NULL"), make("IS NOT NULL")]
  return (isRevoked: boolean): S => isRevoked ? revoked : unrevoked
}

const issued = (revoked: string, { aside }: Fragments) =>
  `o.profile = :profile AND o.certificate IS NOT NULL AND o.revoked_at ${revoked} AND ${aside("o.status")} = 'valid'`

const ended = "o.cert_not_after >= 0 AND o.cert_not_after <= :cutoff"

const pageStatement = perRevoked((revoked) =>
  statement({
    name: "order_purge_page",
    params: { profile: name(), cutoff: int, limit: int },
    row: { id: uuid<OrderId>(), authorizations: int },
    sql: (f) =>
      `SELECT o.id AS "id", (SELECT count(*) FROM authorizations a WHERE a.order_id = o.id) AS "authorizations"
       FROM orders o WHERE ${issued(revoked, f)} AND ${ended} ORDER BY o.cert_not_after, o.id LIMIT :limit${
        f.dialect === "postgres" ? " FOR UPDATE OF o" : ""
      }`
  })
)

const deleteStatement = statement({
  name: "order_purge",
  params: { orders: rows, profile: name(), cutoff: int },
  row: { id: uuid<OrderId>() },
  sql: ({ aside, at, each }) =>
    `DELETE FROM orders WHERE id IN (SELECT ${at(0, "uuid")} FROM ${each(":orders")})
       AND ${aside("profile")} = :profile AND ${aside("status")} = 'valid'
       AND ${aside("cert_not_after")} >= 0 AND ${aside("cert_not_after")} <= :cutoff
     RETURNING id AS "id"`
})

const previewStatement = perRevoked((revoked) =>
  statement({
    name: "order_purge_preview",
    params: { profile: name(), cutoff: int },
    row: { orders: int, oldest: nullable(int), newest: nullable(int) },
    sql: (f) =>
      `SELECT count(*) AS "orders", min(o.cert_not_after) AS "oldest", max(o.cert_not_after) AS "newest"
       FROM orders o WHERE ${issued(revoked, f)} AND ${ended}`
  })
)

const leftStatement = perRevoked((revoked) =>
  statement({
    name: "order_purge_left",
    params: { profile: name() },
    row: { orders: int },
    sql: (f) =>
      `SELECT (SELECT count(*) FROM orders o WHERE ${issued(revoked, f)} AND o.cert_not_after IS NULL)
         + (SELECT count(*) FROM orders o WHERE ${issued(revoked, f)} AND o.cert_not_after < 0) AS "orders"`
  })
)

/** Which orders are deleted: the `valid` orders of a profile whose certificate expired at or before an epoch second. */
export interface Ended {
  readonly profile: string
  readonly cutoff: number
}

/**
 * Locks the next orders to delete, in the order of their expiry. Returns these orders, each with the number of its
 * authorizations.
 */
export const page = (wanted: Ended, isRevoked: boolean, limit: number) =>
  lenient(pageStatement(isRevoked), { ...wanted, limit })

/** Deletes those of the given orders that still meet the condition. Returns the ids of the deleted orders. */
export const remove = (wanted: Ended, orders: ReadonlyArray<OrderId>) =>
  all(deleteStatement, { ...wanted, orders: orders.map((id) => [packedUuid(id)]) })

const both = <A, E, R>(ask: (isRevoked: boolean) => Effect.Effect<A, E, R>) => Effect.all([ask(false), ask(true)])

/**
 * Returns the number of orders that would be deleted, and when the first and the last of their certificates expired.
 */
export const preview = (wanted: Ended) =>
  Effect.map(both((isRevoked) => first(previewStatement(isRevoked), wanted)), (found) => {
    const ends = found.flatMap((row) => [row?.oldest, row?.newest]).filter((end) => end !== undefined)
    return {
      orders: found.reduce((sum, row) => sum + (row?.orders ?? 0), 0),
      oldest: ends.length === 0 ? undefined : Math.min(...ends),
      newest: ends.length === 0 ? undefined : Math.max(...ends)
    }
  })

/** Returns how many `valid` orders of a profile have a certificate with an unknown expiry. */
export const left = (profile: string) =>
  Effect.map(
    both((isRevoked) => first(leftStatement(isRevoked), { profile })),
    (found) => found.reduce((sum, row) => sum + (row?.orders ?? 0), 0)
  )
