import * as Effect from "effect/Effect"
import { notificationEvents, onlyEntry } from "../../../domain/Notification.ts"
import { routesOf, sectionsOf } from "../../../services/notify/NotifyRoutes.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { runJob } from "../../operator/acts/JobActs.ts"
import { listDeliveries, receiverOf, testNotifications } from "../../operator/acts/NotificationActs.ts"
import { listView } from "../Listing.ts"
import { looked, submitted } from "../PanelActs.ts"
import { forRole, laggingPage, moved, page } from "../Route.ts"

/* The page about the notifications that people and programs received (docs/contribute/decisions/notifications.md). */

const path = "/ui/notifications"

/** Returns the choices of the test form: the receivers in force, by backend and by name, and their scopes. */
const offered = (config: Config) => {
  const sections = [...sectionsOf(config)].map(([scope, section]) => ({ scope, routes: routesOf(section) }))
    .filter(({ routes }) => routes.length > 0)
  const routes = sections.flatMap((section) => section.routes)
  const names = routes.flatMap(({ backend, entry }) => entry === onlyEntry ? [backend] : [backend, entry])
  return {
    receivers: [...new Set(names)].toSorted(),
    scopes: sections.map(({ scope }) => scope),
    events: notificationEvents.filter((event) => routes.some(({ events }) => events.has(event)))
  }
}

const canChange = ({ status }: { readonly status: string }): boolean => status === "ready" || status === "running"

/** Returns the routes of the page about notifications. */
export const notificationRoutes = (config: Config) => [
  laggingPage(path, (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { items, limit, total } = yield* looked(listDeliveries, given)
      const rows = items.map((delivery) => ({ ...delivery, receiver: receiverOf(delivery.backend, delivery.entry) }))
      return page("notifications", "Notifications", {
        rows,
        ...offered(config),
        done: query.get("done") ?? "",
        list: listView(path, query, [], { total, limit, shown: rows.length })
      }, { isLive: rows.some(canChange) })
    })),
  forRole("operator")("POST", `${path}/test`, (given) =>
    Effect.map(
      submitted(testNotifications, given),
      ({ items }) =>
        page("tried", "Notifications", {
          rows: items.map((one) => ({ ...one, receiver: receiverOf(one.backend, one.entry) })),
          failed: items.filter(({ delivered }) => !delivered).length
        })
    )),
  forRole("operator")(
    "POST",
    `${path}/run`,
    (given) => Effect.as(submitted(runJob, given), moved(`${path}?done=advanced`))
  )
]
