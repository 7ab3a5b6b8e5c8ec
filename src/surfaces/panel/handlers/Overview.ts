import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { Activity } from "../../../operations/operator/Activity.ts"
import { checklist } from "../../../operations/operator/Checklist.ts"
import type { Failures, IssuanceTimes } from "../../../operations/operator/OrderFigures.ts"
import { trendRanges } from "../../../operations/operator/Trends.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { readAttention } from "../../operator/acts/AttentionActs.ts"
import { readTrends } from "../../operator/acts/ServiceActs.ts"
import type { InputOf } from "../../operator/Field.ts"
import { barPatterns, swatch, trendChart } from "../charts/Bars.ts"
import { endingsChart } from "../charts/EndingBars.ts"
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

/** A row of a table with bars. */
interface BarRow {
  readonly word: string
  readonly count: number
  /** The length of the bar in percent of the longest one. */
  readonly share: number
}

const barRows = (rows: ReadonlyArray<readonly [word: string, count: number]>): ReadonlyArray<BarRow> => {
  const most = Math.max(1, ...rows.map(([, count]) => count))
  return rows.map(([word, count]) => ({ word, count, share: Math.round(count / most * 1000) / 10 }))
}

const mostTypes = 7

/** Returns the failed orders by the type of their problem. Rare types share a row. */
const failuresView = ({ types, ...failures }: Failures) => {
  const rows = types.slice(0, mostTypes).map(({ count, type }) => [type === "" ? "none" : type, count] as const)
  const others = types.slice(mostTypes).reduce((sum, { count }) => sum + count, 0)
  return {
    ...failures,
    url: urlOf("/ui/orders", { status: "invalid", since: rfc3339(failures.since) }),
    rows: barRows([...rows, ...others === 0 ? [] : [["others", others] as const]])
  }
}

/** Returns a number of seconds in its largest whole unit: `1 min`. */
const lengthOf = (seconds: number): string =>
  seconds >= 3600 && seconds % 3600 === 0
    ? `${seconds / 3600}\u00a0h`
    : seconds >= 60 && seconds % 60 === 0
    ? `${seconds / 60}\u00a0min`
    : seconds < 120
    ? `${seconds}\u00a0s`
    : seconds < 7200
    ? `${Math.round(seconds / 60)}\u00a0min`
    : `${Math.round(seconds / 3600)}\u00a0h`

const timesView = ({ count, days, groups, median, percentile95 }: IssuanceTimes) => ({
  count,
  days,
  median: lengthOf(median),
  percentile95: lengthOf(percentile95),
  rows: barRows(
    groups.map(({ count, upTo }) => [upTo === undefined ? "longer" : `up to ${lengthOf(upTo)}`, count] as const)
  )
})

/** Returns the charts below the trend. A chart whose figures take too long is undefined. */
const orderCharts = Effect.gen(function*() {
  const { endings, failures, issuanceTimes } = yield* Activity
  const [failed, times, weeks] = [
    yield* orUnknown(failures),
    yield* orUnknown(issuanceTimes),
    yield* orUnknown(endings)
  ]
  return {
    failed: failed && failuresView(failed),
    times: times && timesView(times),
    endings: weeks && endingsChart(weeks)
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
        ...yield* orderCharts,
        checklist: given.sender.role === "admin" ? openSteps(config, shown.totals?.orders) : [],
        isServing: profilesOf(config).length > 0,
        chart: Result.isFailure(asked) ? undefined : yield* orUnknown(charted(config, asked.success)),
        problem
      }, { isLive: "steady", ...problem === undefined ? {} : { status: problem.status } })
    }))
]
