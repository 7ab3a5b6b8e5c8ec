import * as Effect from "effect/Effect"
import { isId, OrderId } from "../../domain/Id.ts"
import { int, nullable, packedUuid, rows, text, uuid } from "../../engine/sql/Column.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* How long the newest certificates took, from the order to the certificate. */

const issuedStatement = statement({
  name: "issuance_newest",
  params: { since: int, limit: int },
  row: { orderId: nullable(text()), issuedAt: int },
  sql: ({ leads, ledBy }) =>
    `SELECT l.order_id AS "orderId", l.created_at AS "issuedAt" FROM audit_log l
     WHERE ${leads("l.event", "'certificate_issued'")} AND l.created_at >= :since
     ORDER BY ${ledBy("l.event", "l.created_at DESC")} LIMIT :limit`
})

const begunStatement = statement({
  name: "order_begun",
  params: { ids: rows },
  row: { id: uuid<OrderId>(), createdAt: int },
  sql: ({ oneOf }) =>
    `SELECT o.id AS "id", o.created_at AS "createdAt" FROM orders o WHERE o.id ${oneOf(":ids", "uuid")}`
})

/**
 * Returns the seconds from the order to the certificate of the newest issuances that the audit trail has since an epoch
 * second. Issuances whose order is deleted are left out.
 */
export const newestIssuanceSeconds = (
  of: { readonly since: number; readonly limit: number }
): Effect.Effect<ReadonlyArray<number>, StorageFailed, Database> =>
  Effect.gen(function*() {
    const issued = (yield* lenient(issuedStatement, of)).flatMap(({ issuedAt, orderId }) =>
      orderId === undefined || !isId(orderId) ? [] : [{ issuedAt, orderId: OrderId(orderId) }]
    )
    if (issued.length === 0) return []
    const begun = yield* lenient(begunStatement, { ids: issued.map(({ orderId }) => [packedUuid(orderId)]) })
    const createdAt = new Map(begun.map((order) => [order.id, order.createdAt]))
    return issued.flatMap(({ issuedAt, orderId }) => {
      const since = createdAt.get(orderId)
      return since === undefined ? [] : [Math.max(0, issuedAt - since)]
    })
  })
