import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { int, name, text, uuid } from "../../engine/sql/Column.ts"
import { all, lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { unissued } from "./Unissued.ts"

/* Orders that have expired without a certificate. */

// The pages are read along the index, because this statement does not change the orders.
const pageStatement = statement({
  name: "order_expired_page",
  params: {
    status: text<"pending" | "invalid">(),
    profile: name(),
    createdBefore: int,
    now: int,
    afterTime: int,
    afterId: uuid<OrderId>(),
    limit: int
  },
  row: { id: uuid<OrderId>(), createdAt: int },
  sql: (f) =>
    `SELECT id AS "id", created_at AS "createdAt" FROM orders ${f.indexedBy("orders_status_created_at")}
     WHERE status = :status${unissued(f)} AND profile = :profile AND created_at <= :createdBefore
       AND (expires_at IS NULL OR expires_at <= :now)
       AND created_at >= :afterTime AND (created_at > :afterTime OR id > :afterId)
     ORDER BY created_at, id LIMIT :limit`
})

// This never deletes a `valid` order, and so never an order with a live certificate. The status is tested again outside
// the subquery, because PostgreSQL then repeats the test if the row has changed in the meantime.
const sweepStatement = statement({
  name: "order_sweep",
  params: { profile: name(), createdBefore: int, expiredBefore: int, limit: int },
  row: { id: uuid<OrderId>() },
  sql: (f) =>
    `DELETE FROM orders WHERE id IN (SELECT id FROM orders ${f.indexedBy("orders_status_created_at")}
       WHERE status IN ('invalid', 'pending', 'ready', 'processing')${unissued(f)} AND profile = :profile
         AND created_at < :createdBefore AND (expires_at IS NULL OR expires_at < :expiredBefore) LIMIT :limit) AND ${
      f.aside("status")
    } <> 'valid' RETURNING id`
})

/**
 * Returns the expired orders with this status that were created at or before an epoch second and follow a given order,
 * oldest first.
 */
export const page = (
  params: Parameters<typeof all<typeof pageStatement.params, typeof pageStatement.row>>[1]
) => lenient(pageStatement, params)

/**
 * Deletes unfinished and failed orders whose creation and expiry are both before the given epoch seconds. Returns how
 * many orders were deleted.
 */
export const sweep = (
  profile: string,
  before: { readonly createdBefore: number; readonly expiredBefore: number; readonly limit: number }
) => Effect.map(all(sweepStatement, { profile, ...before }), (gone) => gone.length)
