import * as Effect from "effect/Effect"
import { isId, OrderId } from "../../domain/Id.ts"
import { LiveCertificates } from "../../domain/OperatorError.ts"
import { emit } from "../../domain/words/Log.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as audit from "../../store/AuditRows.ts"
import * as deletions from "../../store/Deletions.ts"
import * as orders from "../../store/orders/OrderRows.ts"
import * as upstreamOrders from "../../store/upstream/UpstreamOrderRows.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf, tellingRefusal } from "../Operator.ts"
import * as orphans from "../work/OrphanedCertificates.ts"
import { noSuchOrder } from "./Serials.ts"

/* Deletes single orders for operators. */

/**
 * Returns what {@link remove} would delete, and refuses whatever {@link remove} would refuse. Commands call this
 * function before they ask for confirmation.
 */
export const preview = Effect.fn("OrderRemoval.preview")(function*(id: string) {
  const found = isId(id) ? yield* deletions.findOrder(OrderId(id), yield* currentSeconds) : undefined
  if (found === undefined) return yield* noSuchOrder(id)
  return found.isLive === 1 ? yield* new LiveCertificates({ noun: "order", id, count: 1 }) : found
})

/** Deletes an order with its authorizations and challenges, unless its certificate can still be used. */
export const remove = Effect.fn("OrderRemoval.remove")(function*(operator: Operator, id: string) {
  const done = yield* transaction(Effect.gen(function*() {
    // An issuance locks this row while it stores a certificate. So the facts that are read below cannot change before
    // the deletion.
    if (isId(id)) yield* orders.lock(OrderId(id))
    const { accountId, authorizations, id: orderId, profile, status } = yield* preview(id)
    if (status === "processing") {
      const relayed = yield* upstreamOrders.find(orderId)
      if (relayed !== undefined) yield* orphans.lookAfter({ order_id: orderId, profile }, relayed)
    }
    const gone = yield* deletions.deleteOrder(orderId, yield* currentSeconds)
    if (gone === undefined) return yield* new LiveCertificates({ noun: "order", id, count: 1 })
    yield* audit.insert({
      event: "order_deleted",
      ...actorOf(operator),
      profile,
      accountId,
      orderId,
      detail: { authorizations, status }
    })
    return { deleted: { authorizations } }
  })).pipe(tellingRefusal(operator, { order_id: id }))
  yield* emit("admin_order_deleted", { ...actorFields(operator), order_id: id, ...done.deleted })
  return done
}, Effect.uninterruptible)
