import type { OrderId } from "../../domain/Id.ts"
import { int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { lenient, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { chain, chainOf } from "../orders/StoredChain.ts"

/* Stores what upstreams suggest about the renewal of relayed certificates (RFC 9773), in the rows of their orders. */

const dueStatement = statement({
  name: "upstream_renewal_due",
  params: { now: int, limit: int },
  row: {
    orderId: uuid<OrderId>(),
    profile: name(),
    orderUrl: nullable(text()),
    certificate: nullable(chain),
    notAfter: nullable(int),
    revokedAt: nullable(int)
  },
  sql: (f) =>
    `SELECT u.order_id AS "orderId", o.profile AS "profile", u.upstream_order_url AS "orderUrl",
       ${chainOf("o.", f)} AS "certificate", o.cert_not_after AS "notAfter", o.revoked_at AS "revokedAt"
     FROM upstream_orders u JOIN orders o ON o.id = u.order_id
     WHERE u.renewal_due IS NOT NULL AND u.renewal_due <= :now AND u.status <> 'processing' ORDER BY u.renewal_due LIMIT :limit`
})

const keepStatement = statement({
  name: "upstream_renewal_keep",
  params: {
    orderId: uuid<OrderId>(),
    start: nullable(int),
    end: nullable(int),
    explanationUrl: nullable(text()),
    due: int
  },
  row: {},
  sql: () =>
    `UPDATE upstream_orders SET renewal_start = :start, renewal_end = :end, renewal_url = :explanationUrl, renewal_due = :due
     WHERE order_id = :orderId`
})

const againStatement = statement({
  name: "upstream_renewal_again",
  params: { orderId: uuid<OrderId>(), due: nullable(int) },
  row: {},
  sql: () => `UPDATE upstream_orders SET renewal_due = :due WHERE order_id = :orderId`
})

/**
 * Returns the relayed orders that have ended and about whose renewal the upstream must now be asked. The order that has
 * been due for the longest time comes first.
 */
export const due = (now: number, limit: number) => lenient(dueStatement, { now, limit })

/**
 * Stores the answer of an upstream. If the answer has no window, removes the stored window. Times are epoch seconds.
 */
export const keep = (answered: {
  readonly orderId: OrderId
  readonly window: {
    readonly start: number
    readonly end: number
    readonly explanationUrl: string | undefined
  } | undefined
  readonly due: number
}) => {
  const { due, orderId, window } = answered
  return run(keepStatement, {
    orderId,
    start: window?.start,
    end: window?.end,
    explanationUrl: window?.explanationUrl,
    due
  })
}

/**
 * Stores when the upstream is asked again, and keeps its last answer. If the time is `undefined`, the upstream is never
 * asked again.
 */
export const again = (orderId: OrderId, due: number | undefined) => run(againStatement, { orderId, due })
