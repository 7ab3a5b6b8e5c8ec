import * as Effect from "effect/Effect"
import type { Config } from "../../../settings/AppConfig.ts"
import { listUpstreamOrders, readUpstreamOrder, upstreamStatuses } from "../../operator/acts/UpstreamOrderActs.ts"
import type { Filter } from "../Listing.ts"
import { listView, windowOf } from "../Listing.ts"
import { looked } from "../PanelActs.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { laggingPage, page } from "../Route.ts"

/* The pages about orders that were placed at an upstream CA. */

const filtersOf = (config: Config): ReadonlyArray<Filter> => [
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  { name: "status", label: "Status upstream", kind: "choice", words: upstreamStatuses }
]

/** Returns the routes of the pages about upstream orders. */
export const upstreamOrderRoutes = (config: Config) => [
  laggingPage("/ui/upstream-orders", (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { items, problem, total } = yield* orRefused(looked(listUpstreamOrders, given))
      return page("upstream-orders", "Upstream orders", {
        rows: items,
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
  laggingPage("/ui/upstream-orders/{id}", ({ parameters: { id = "" }, query }) =>
    Effect.gen(function*() {
      const order = yield* looked(readUpstreamOrder, { parameters: { orderId: id }, query })
      const urls = [
        { name: "Order there", value: order.upstreamOrderUrl },
        { name: "Finalize there", value: order.upstreamFinalizeUrl },
        { name: "Certificate there", value: order.upstreamCertificateUrl }
      ]
      const isLive = order.status === "processing" || order.job?.status === "ready" || order.job?.status === "running"
      return page("upstream-order", `Upstream order ${order.orderId}`, { order, urls }, { isLive })
    }))
]
