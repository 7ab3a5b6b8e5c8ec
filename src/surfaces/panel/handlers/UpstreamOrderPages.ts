import * as Effect from "effect/Effect"
import { currentSeconds } from "../../../kernel/Time.ts"
import { jobObject, upstreamOrderObject } from "../../../operations/Objects.ts"
import { upstreamOrderFilters, upstreamStatuses } from "../../../operations/RecordFilters.ts"
import * as upstreamOrders from "../../../operations/upstream/UpstreamOrders.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, windowOf } from "../Listing.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, page } from "../Route.ts"

/* Orders that were placed at an upstream CA. */

const names = ["profile", "status"] as const

const filtersOf = (config: Config): ReadonlyArray<Filter> => [
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  { name: "status", label: "Status upstream", kind: "choice", words: upstreamStatuses }
]

/** The routes of upstream orders. */
export const upstreamOrderRoutes = (config: Config) => [
  forRole("viewer")("GET", "/ui/upstream-orders", ({ query }) =>
    Effect.gen(function*() {
      const window = windowOf(query, config)
      const { items, problem, total } = yield* orRefused(
        Effect.flatMap(upstreamOrderFilters(filtersIn(query, names)), (wanted) => upstreamOrders.list(wanted, window))
      )
      const now = yield* currentSeconds
      return page("upstream-orders", "Upstream orders", {
        rows: items.map((order) => upstreamOrderObject(config, order, now)),
        problem,
        relaying: config.profiles.filter(({ enabled, signer }) => enabled && signer.backend === "relay")
          .map(({ name }) => name),
        list: listView("/ui/upstream-orders", query, filtersOf(config), {
          total,
          limit: windowOf(query, config).limit,
          shown: items.length
        })
      }, problem === undefined ? {} : { status: problem.status })
    })),
  forRole("viewer")("GET", "/ui/upstream-orders/{id}", ({ parameters: { id = "" } }) =>
    Effect.gen(function*() {
      const { job, order: found } = yield* upstreamOrders.find(id)
      const order = upstreamOrderObject(config, found, yield* currentSeconds)
      const urls = [
        { name: "Order there", value: order.upstreamOrderUrl },
        { name: "Finalize there", value: order.upstreamFinalizeUrl },
        { name: "Certificate there", value: order.upstreamCertificateUrl }
      ]
      const isLive = order.status === "processing" || job?.status === "ready" || job?.status === "running"
      return page("upstream-order", `Upstream order ${id}`, {
        order: { ...order, ...(job === undefined ? {} : { job: jobObject(job) }) },
        urls
      }, { isLive })
    }))
]
