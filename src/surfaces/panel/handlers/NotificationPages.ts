import * as Effect from "effect/Effect"
import { notificationEvents, onlyEntry } from "../../../domain/Notification.ts"
import { deliveryObject, list } from "../../../operations/notify/Recent.ts"
import * as trial from "../../../operations/notify/Trial.ts"
import { routesOf, sectionsOf } from "../../../services/notify/NotifyRoutes.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { runJob } from "../../operator/acts/JobActs.ts"
import { listView, windowOf } from "../Listing.ts"
import { submitted } from "../PanelActs.ts"
import { field } from "../PanelForm.ts"
import { forRole, moved, operatorIn, page } from "../Route.ts"

/* What people and programs were told (docs/decisions/notifications.md). */

const path = "/ui/notifications"

const receiverOf = (backend: string | undefined, entry: string | undefined): string =>
  [backend, entry === onlyEntry ? undefined : entry].filter((part) => part !== undefined).join(" ")

/** What the form of a test offers: the receivers in force by backend and by name, and whose they are. */
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

/** The routes of notifications. */
export const notificationRoutes = (config: Config) => [
  forRole("viewer")("GET", path, ({ query }) =>
    Effect.gen(function*() {
      const { items, total } = yield* list(windowOf(query, config))
      const rows = items.map((job) => {
        const delivery = deliveryObject(job)
        return { ...delivery, receiver: receiverOf(delivery.backend, delivery.entry) }
      })
      return page("notifications", "Notifications", {
        rows,
        ...offered(config),
        done: query.get("done") ?? "",
        list: listView(path, query, [], { total, limit: windowOf(query, config).limit, shown: rows.length })
      }, { isLive: rows.some(canChange) })
    })),
  forRole("operator")("POST", `${path}/test`, (given) =>
    Effect.map(
      trial.test(config, operatorIn(given), {
        target: field(given.form, "target"),
        event: field(given.form, "event"),
        profile: field(given.form, "profile")
      }),
      (tried) =>
        page("tried", "Notifications", {
          rows: tried.map((one) => ({ ...one, receiver: receiverOf(one.backend, one.entry) })),
          failed: tried.filter(({ delivered }) => !delivered).length
        })
    )),
  forRole("operator")(
    "POST",
    `${path}/run`,
    (given) => Effect.as(submitted(runJob, given), moved(`${path}?done=advanced`))
  )
]
