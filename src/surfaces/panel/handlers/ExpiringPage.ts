import * as Effect from "effect/Effect"
import * as expiring from "../../../operations/operator/ExpiringRecords.ts"
import { mostOverApi } from "../../../operations/operator/Exports.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { exportExpiring, listExpiring, supersededWords } from "../../operator/acts/ExpiringActs.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, urlOf, windowOf } from "../Listing.ts"
import { downloaded, looked } from "../PanelActs.ts"
import { orRefused, profilesOf, severalKinds } from "../PanelLists.ts"
import { laggingPage, page } from "../Route.ts"

/* The page about certificates that expire soon. */

const path = "/ui/expiring"

const filtersOf = (config: Config): ReadonlyArray<Filter> => [
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  { name: "days", label: "Within days", kind: "text", hint: String(expiring.usualDaysOf(config)) },
  { name: "superseded", label: "Replaced ones", kind: "choice", words: supersededWords.slice(1), none: "shown" }
]

/** The windows that the page links to, in days. */
const windows = [7, 30, 90, 365]

/** Returns the routes of the page about certificates that expire soon. */
export const expiringRoutes = (config: Config, filters = filtersOf(config), several = severalKinds(config)) => [
  laggingPage(path, (asked) =>
    Effect.gen(function*() {
      const { query } = asked
      const given = filtersIn(query, filters)
      const { profile, superseded } = given
      let counts = { days: expiring.usualDaysOf(config, profile), hidden: 0, isHiding: false, isCut: false }
      const { items, problem, total } = yield* orRefused(Effect.gen(function*() {
        const { days, hidden, items, total, truncated = false } = yield* looked(listExpiring, asked)
        counts = { days, hidden, isHiding: superseded === "hide", isCut: truncated }
        return { items, total: total - hidden }
      }))
      const links = windows.map((days) => ({ days, url: urlOf(path, { ...given, days: String(days) }) }))
      return page("expiring", "Expiring certificates", {
        rows: items,
        several,
        problem,
        ...counts,
        profile,
        windows: links,
        longer: links.find(({ days }) => days > counts.days),
        showAll: urlOf(path, { ...given, superseded: undefined }),
        list: listView(path, query, filters, {
          total,
          limit: windowOf(query, config).limit,
          shown: items.length
        }, {
          path: `${path}/export`,
          most: mostOverApi
        })
      }, problem === undefined ? {} : { status: problem.status })
    })),
  laggingPage(`${path}/export`, (given) => downloaded(exportExpiring, given))
]
