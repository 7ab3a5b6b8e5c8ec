import * as Effect from "effect/Effect"
import { isId, OrderId } from "../../domain/Id.ts"
import { NoSuch } from "../../domain/OperatorError.ts"
import * as jobSearch from "../../store/jobs/JobSearch.ts"
import type { UpstreamOrderFilters } from "../../store/upstream/UpstreamOrderRecords.ts"
import * as upstreamOrderRecords from "../../store/upstream/UpstreamOrderRecords.ts"
import { readForOperator } from "./OperatorReads.ts"

/** Returns a page of relayed orders, newest first, and the number of matches. */
export const list = (
  filters: UpstreamOrderFilters,
  page: { readonly limit: number; readonly offset: number }
) =>
  readForOperator(Effect.all({
    items: upstreamOrderRecords.search(filters, page),
    total: upstreamOrderRecords.countMatches(filters)
  }))

const everyJob = { limit: 1000, offset: 0 }

/** Finds one relayed order, with its relay job if the queue still has that job. */
export const find = Effect.fn("UpstreamOrders.find")(function*(id: string) {
  const order = isId(id) ? yield* upstreamOrderRecords.find(OrderId(id)) : undefined
  if (order === undefined) return yield* new NoSuch({ noun: "upstream order", id })
  const ofOrder = yield* jobSearch.search({ orderId: order.orderId }, everyJob)
  const job = ofOrder.find(({ kind }) => kind === "signer_relay_issue" || kind === "signer_relay_issue_restricted")
  return { order, job }
})
