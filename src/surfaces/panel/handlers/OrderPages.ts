import * as Effect from "effect/Effect"
import { orderFilterWords, statusShown } from "../../../domain/Order.ts"
import { reasonShown, revocationReasons } from "../../../domain/RevocationReason.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { saidOfProblem } from "../../../operations/operator/Catalogue.ts"
import { decodedChain } from "../../../operations/operator/CertificateView.ts"
import { mostOverApi } from "../../../operations/operator/Exports.ts"
import { orderDetailObject } from "../../../operations/operator/Objects.ts"
import { decodedChainObject } from "../../../operations/operator/objects/CertificateObjects.ts"
import * as orders from "../../../operations/operator/OrderRecords.ts"
import { timelineOf } from "../../../operations/operator/OrderTimeline.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { deleteOrder, exportOrders, listOrders, revokeOrder } from "../../operator/acts/OrderActs.ts"
import type { Filter } from "../Listing.ts"
import { listView, periodsOf, windowOf } from "../Listing.ts"
import { downloaded, looked, submitted } from "../PanelActs.ts"
import { directoriesOf, orderFilters, orRefused, severalKinds } from "../PanelLists.ts"
import { forRole, laggingPage, moved, page } from "../Route.ts"
import { certificateViews } from "../ShownCertificate.ts"

/* The pages about orders and their certificates. */

const filtersOf = (config: Config): ReadonlyArray<Filter> =>
  orderFilters(config, { name: "status", label: "Status", kind: "choice", words: orderFilterWords }, [
    { name: "since", label: "Created since", kind: "date" },
    { name: "until", label: "Created until", kind: "date" }
  ])

const ended = new Set(["valid", "invalid"])

/** Returns whether any part of an order can still change by itself. */
const isLive = (status: string, jobs: ReadonlyArray<{ readonly status: string }>): boolean =>
  !ended.has(status) || jobs.some(({ status }) => status === "running" || status === "ready")

/** Returns the routes of the pages about orders. */
export const orderRoutes = (
  config: Config,
  filters = filtersOf(config),
  directories = directoriesOf(config),
  several = severalKinds(config)
) => [
  laggingPage(
    "/ui/orders",
    Effect.fnUntraced(function*(given) {
      const { query } = given
      const { isCut, items, problem, total } = yield* orRefused(looked(listOrders, given))
      const now = yield* currentSeconds
      const counted = { total, limit: windowOf(query, config).limit, shown: items.length, isCut }
      return page("orders", "Orders", {
        rows: items,
        several,
        problem,
        directories,
        periods: periodsOf("/ui/orders", query, filters, now),
        done: query.get("done") ?? "",
        list: listView("/ui/orders", query, filters, counted, {
          path: "/ui/orders/export",
          most: mostOverApi,
          command: "acme-svc order export"
        })
      }, problem === undefined ? {} : { status: problem.status })
    })
  ),
  laggingPage("/ui/orders/export", (given) => downloaded(exportOrders, given)),
  laggingPage(
    "/ui/orders/{id}",
    Effect.fnUntraced(function*({ parameters: { id = "" }, query }) {
      const found = yield* orders.detail(config, id)
      const now = yield* currentSeconds
      const order = orderDetailObject(config, found, now)
      const chain = order.certificatePem === undefined
        ? undefined
        : certificateViews(decodedChainObject(yield* decodedChain(config, id)), now)
      const status = statusShown(found.order, orders.validityOf(config, found.order.profile), now)
      return page("order", order.identifiers[0]?.value ?? `Order ${id}`, {
        order,
        said: saidOfProblem(order.error?.type),
        several,
        chain,
        timeline: yield* timelineOf(config, found, now),
        reason: found.order.revocationReason === undefined ? "" : reasonShown(found.order.revocationReason),
        reasons: revocationReasons,
        isLiveCertificate: found.order.certificate !== undefined && found.order.revokedAt === undefined &&
          (found.order.certNotAfter ?? now + 1) > now,
        done: query.get("done") ?? ""
      }, { isLive: isLive(status, order.jobs) })
    })
  ),
  forRole("viewer")(
    "GET",
    "/ui/orders/{id}/chain.pem",
    ({ parameters: { id = "" } }) =>
      Effect.map(orders.chain(id), (pem) => ({
        _tag: "Sent" as const,
        answer: {
          status: 200,
          headers: {
            "content-type": "application/pem-certificate-chain",
            "content-disposition": `attachment; filename="${id}.pem"`
          },
          body: pem
        }
      }))
  ),
  forRole("operator")(
    "POST",
    "/ui/orders/{id}/revoke",
    Effect.fnUntraced(function*(given) {
      const { status } = yield* submitted(revokeOrder, given)
      return moved(`/ui/orders/${given.parameters["id"]}?done=${status === "queued" ? "revocation-queued" : "revoked"}`)
    })
  ),
  forRole("operator")(
    "POST",
    "/ui/orders/{id}/delete",
    (given) => Effect.as(submitted(deleteOrder, given), moved("/ui/orders?done=order-deleted"))
  )
]
