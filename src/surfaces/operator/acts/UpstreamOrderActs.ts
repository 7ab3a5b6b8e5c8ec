import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { currentSeconds } from "../../../engine/Time.ts"
import { jobObject, upstreamOrderObject } from "../../../operations/operator/Objects.ts"
import * as upstreamOrders from "../../../operations/operator/UpstreamOrders.ts"
import { act, noun } from "../Act.ts"
import { Configured, paged } from "../Acting.ts"
import { key, ofProfile, optional, paging, word } from "../Field.ts"
import { pageOf } from "../schemas/Common.ts"
import { Job, UpstreamOrder } from "../schemas/OrderSchemas.ts"

/* Declares the acts about orders that were placed at an upstream CA. */

/** Every status of an order at its upstream. */
export const upstreamStatuses = UpstreamOrder.fields.status.literals

const namesOf = (identifiers: ReadonlyArray<{ readonly value: string }>): string =>
  identifiers.map(({ value }) => value).join(" ")

/** Lists relayed orders. */
export const listUpstreamOrders = act({
  id: "listUpstreamOrders",
  does: "List relayed orders, newest first",
  access: "viewer",
  mayLag: true,
  input: {
    ...ofProfile,
    status: optional(word(upstreamStatuses, "The status of the order at the upstream.")),
    ...paging
  },
  output: pageOf(UpstreamOrder),
  errors: [],
  run: ({ profile, status, ...window }) =>
    Effect.gen(function*() {
      const config = yield* Configured.config
      const now = yield* currentSeconds
      return yield* paged(
        window,
        (window) => upstreamOrders.list({ profile, status }, window),
        (order) => upstreamOrderObject(config, order, now)
      )
    }),
  http: { route: "GET /api/upstream-orders" },
  cli: {
    command: "upstream order list",
    example: "upstream order list --status invalid",
    columns: ({ error = "", identifiers, localStatus, orderId, profile, status, updatedAt }) => ({
      order: orderId,
      profile,
      upstream: status,
      here: localStatus,
      changed: updatedAt,
      names: namesOf(identifiers),
      error
    })
  }
})

/** Shows a relayed order, with its job if the job is still in the queue. */
export const readUpstreamOrder = act({
  id: "readUpstreamOrder",
  does: "Show a relayed order, by the id of the local order",
  access: "viewer",
  mayLag: true,
  input: { orderId: key("The id of the local order.", { help: "The id of the order at this service." }) },
  output: Schema.Struct({ ...UpstreamOrder.fields, job: Schema.optionalKey(Job) }).annotate({
    identifier: "UpstreamOrderDetail"
  }),
  errors: [],
  run: ({ orderId }) =>
    Effect.gen(function*() {
      const { job, order } = yield* upstreamOrders.find(orderId)
      const object = upstreamOrderObject(yield* Configured.config, order, yield* currentSeconds)
      return { ...object, ...job === undefined ? {} : { job: jobObject(job) } }
    }),
  http: { route: "GET /api/upstream-orders/{orderId}" },
  cli: {
    command: "upstream order show",
    help: "Show a relayed order.",
    example: "upstream order show ID",
    members: ({ identifiers, job, ...shown }) => ({
      ...shown,
      names: identifiers.map(({ value }) => value),
      job: job === undefined ? undefined : `${job.id}, ${job.status}`
    })
  }
})

/** The acts about orders that were placed at an upstream CA. */
export const upstreamOrderActs = noun({
  name: "upstreamOrders",
  description: "Orders that were placed at an upstream CA.",
  commands: {
    upstream: "The accounts and orders of relays at their upstreams.",
    "upstream order": "Relayed orders and their state at the upstream."
  },
  acts: [listUpstreamOrders, readUpstreamOrder]
})
