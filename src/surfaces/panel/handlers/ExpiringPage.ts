import * as Effect from "effect/Effect"
import { expiringFile, mostOverApi } from "../../../operations/Exports.ts"
import { expiringObject } from "../../../operations/Objects.ts"
import * as expiring from "../../../operations/order/Expiring.ts"
import { expiringFilters, supersededWords } from "../../../operations/RecordFilters.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, urlOf, windowOf } from "../Listing.ts"
import { exportOf } from "../PanelExport.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, page } from "../Route.ts"

/* Certificates that expire soon. */

const path = "/ui/expiring"

const names = ["profile", "days", "superseded"] as const

const filtersOf = (config: Config): ReadonlyArray<Filter> => [
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  { name: "days", label: "Within days", kind: "text", hint: String(expiring.usualDaysOf(config)) },
  { name: "superseded", label: "Replaced ones", kind: "choice", words: supersededWords.slice(1), none: "shown" }
]

/** The windows that the page links to, in days. */
const windows = [7, 30, 90, 365]

/** The routes of what expires. */
export const expiringRoutes = (config: Config) => [
  forRole("viewer")("GET", path, ({ query }) =>
    Effect.gen(function*() {
      const given = filtersIn(query, names)
      let counts = { days: expiring.usualDaysOf(config, given.profile), hidden: 0, isHiding: false, isCut: false }
      const { items, problem, total } = yield* orRefused(Effect.gen(function*() {
        const wanted = yield* expiringFilters(config, given)
        const found = yield* expiring.list(wanted, windowOf(query, config))
        counts = {
          days: wanted.days,
          hidden: found.hidden,
          isHiding: wanted.hideSuperseded,
          isCut: found.truncated
        }
        return { items: found.items, total: found.total - found.hidden }
      }))
      const links = windows.map((days) => ({ days, url: urlOf(path, { ...given, days: String(days) }) }))
      return page("expiring", "Expiring certificates", {
        rows: items.map(expiringObject),
        problem,
        ...counts,
        profile: given.profile,
        windows: links,
        longer: links.find(({ days }) => days > counts.days),
        showAll: urlOf(path, { ...given, superseded: undefined }),
        list: listView(path, query, filtersOf(config), {
          total,
          limit: windowOf(query, config).limit,
          shown: items.length
        }, {
          path: `${path}/export`,
          most: mostOverApi
        })
      }, problem === undefined ? {} : { status: problem.status })
    })),
  forRole("viewer")(
    "GET",
    `${path}/export`,
    (given) =>
      exportOf(given, "expiring", (format) =>
        Effect.flatMap(
          expiringFilters(config, filtersIn(given.query, names)),
          (wanted) => expiringFile(wanted, { format, most: mostOverApi })
        ))
  )
]
