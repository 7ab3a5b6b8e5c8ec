import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { Activity } from "../../../operations/operator/Activity.ts"
import { checklist } from "../../../operations/operator/Checklist.ts"
import { trendRanges } from "../../../operations/operator/Trends.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { readAttention } from "../../operator/acts/AttentionActs.ts"
import { readTrends } from "../../operator/acts/ServiceActs.ts"
import type { InputOf } from "../../operator/Field.ts"
import { barPatterns, swatch, trendChart } from "../charts/Bars.ts"
import { urlOf } from "../Listing.ts"
import { askedOf } from "../PanelActs.ts"
import { profilesOf } from "../PanelLists.ts"
import { forRole, page } from "../Route.ts"

/* The first page, which lists what needs attention and shows the trends. */

const daySeconds = 86_400
/** Returns the trend of one profile or of all profiles as a chart, with links to other ranges and profiles. */
const charted = Effect.fnUntraced(function*(config: Config, { profile, range }: InputOf<typeof readTrends.input>) {
  const names = profilesOf(config)
  const { buckets, bucketSeconds } = yield* (yield* Activity).trend(profile, range)
  const keptDays = config.audit.retention_days
  const keptSince = keptDays === 0 ? 0 : (yield* currentSeconds) - keptDays * daySeconds
  const linked = (to: { readonly range?: string; readonly profile?: string | undefined }) =>
    urlOf("/ui/", { range, profile, ...to })
  return {
    ...trendChart(buckets.map((bucket) => ({ ...bucket, isKept: bucket.start >= keptSince })), bucketSeconds),
    patterns: barPatterns,
    swatches: { issued: swatch("issued"), refused: swatch("refused"), revoked: swatch("revoked") },
    range,
    profile: profile ?? "",
    isCut: buckets.some(({ start }) => start < keptSince),
    keptDays,
    ranges: trendRanges.map((one) => ({ word: one, url: linked({ range: one }), isCurrent: one === range })),
    profiles: [undefined, ...names].map((one) => ({
      word: one ?? "all",
      url: linked({ profile: one }),
      isCurrent: one === profile
    }))
  }
})

/** Returns a count, or undefined if it took too long. The page is then shown without it. */
const orUnknown = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.map(Effect.option(self), Option.getOrUndefined)

const figures = Effect.gen(function*() {
  const { refusals, totals } = yield* Activity
  const failing = yield* orUnknown(refusals)
  return {
    totals: yield* orUnknown(totals),
    refusals: failing === undefined ? undefined : {
      count: failing.count,
      url: urlOf("/ui/audit", { outcome: "failure", since: rfc3339(failing.since) })
    }
  }
})

/** Returns the steps of the checklist while one of them is not done. Without the number of orders, none is known. */
const openSteps = (config: Config, orders: number | undefined) => {
  const steps = orders === undefined ? [] : checklist(config, orders)
  return steps.every(({ isDone }) => isDone) ? [] : steps
}

/** Returns the routes of the first page. */
export const overviewRoutes = (config: Config) => [
  forRole("viewer")("GET", "/ui/", (given) =>
    Effect.gen(function*() {
      // If the query is refused, only the chart shows the refusal, because an operator still needs the rest of the
      // page.
      const asked = askedOf(readTrends.input, given)
      const problem = Result.isFailure(asked) ? operatorProblemOf(asked.failure) : undefined
      const shown = yield* figures
      return page("overview", "Overview", {
        attention: yield* readAttention.run({}),
        ...shown,
        checklist: given.sender.role === "admin" ? openSteps(config, shown.totals?.orders) : [],
        isServing: profilesOf(config).length > 0,
        chart: Result.isFailure(asked) ? undefined : yield* orUnknown(charted(config, asked.success)),
        problem
      }, { isLive: "steady", ...problem === undefined ? {} : { status: problem.status } })
    }))
]
