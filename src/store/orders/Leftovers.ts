import type { OrderId } from "../../domain/Id.ts"
import { orderMoves } from "../../domain/Order.ts"
import { int, text, uuid } from "../../kernel/sql/Column.ts"
import { leaving, reached } from "../../kernel/sql/Guard.ts"
import { all, lenient, run } from "../../kernel/sql/Query.ts"
import { statement } from "../../kernel/sql/Statement.ts"

/* The leftovers of orders without a certificate: authorizations and challenges, ten times as large as the order itself. */

const lapseStatement = statement({
  name: "order_lapse_batch",
  params: { profile: text(), createdBefore: int, limit: int },
  row: { id: uuid<OrderId>() },
  sql: ({ byStatus }) =>
    `UPDATE orders SET status = ${reached(orderMoves.lapse)}
     WHERE ${leaving(orderMoves.lapse)} AND id IN (SELECT id FROM orders ${byStatus}
       WHERE ${leaving(orderMoves.lapse)} AND profile = :profile AND created_at <= :createdBefore LIMIT :limit)
     RETURNING id`
})

// In pages along the index, because orders without leftovers stay in the table.
const pageStatement = statement({
  name: "order_leftover_page",
  params: {
    status: text<"pending" | "invalid">(),
    profile: text(),
    createdBefore: int,
    afterTime: int,
    afterId: uuid<OrderId>(),
    limit: int
  },
  row: { id: uuid<OrderId>(), createdAt: int, hasAuthorizations: int },
  sql: ({ byStatus }) =>
    `SELECT o.id AS "id", o.created_at AS "createdAt",
       CASE WHEN EXISTS (SELECT 1 FROM authorizations a WHERE a.order_id = o.id) THEN 1 ELSE 0 END AS "hasAuthorizations"
     FROM orders o ${byStatus}
     WHERE o.status = :status AND o.profile = :profile AND o.created_at <= :createdBefore
       AND o.created_at >= :afterTime AND (o.created_at > :afterTime OR o.id > :afterId)
     ORDER BY o.created_at, o.id LIMIT :limit`
})

const stripStatement = statement({
  name: "authorizations_strip",
  params: { orderId: uuid<OrderId>() },
  row: {},
  sql: () => `DELETE FROM authorizations WHERE order_id = :orderId`
})

/** Sets up to `limit` orders to `invalid` that were created at or before an epoch second and never finalized. */
export const lapse = (profile: string, createdBefore: number, limit: number) =>
  all(lapseStatement, { profile, createdBefore, limit })

/**
 * Orders of a status created at or before an epoch second, oldest first, after a given one. `hasAuthorizations` says whether
 * an order has leftovers.
 */
export const page = (
  params: Parameters<typeof all<typeof pageStatement.params, typeof pageStatement.row>>[1]
) => lenient(pageStatement, params)

/** Deletes the authorizations and challenges of an order. */
export const strip = (orderId: OrderId) => run(stripStatement, { orderId })
