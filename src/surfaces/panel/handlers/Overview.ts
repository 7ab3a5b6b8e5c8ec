import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import * as workers from "../../../engine/queue/Workers.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { Activity } from "../../../operations/operator/Activity.ts"
import { caStateOf } from "../../../operations/operator/CaState.ts"
import * as crlRecords from "../../../operations/operator/CrlRecords.ts"
import { workerObject } from "../../../operations/operator/Objects.ts"
import { profilesShown } from "../../../operations/operator/ProfileRecords.ts"
import { trendRanges } from "../../../operations/operator/Trends.ts"
import { sweepsOf } from "../../../operations/work/Rounds.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { readTrends } from "../../operator/acts/ServiceActs.ts"
import type { InputOf } from "../../operator/Field.ts"
import { barPatterns, swatch, trendChart } from "../charts/Bars.ts"
import { urlOf } from "../Listing.ts"
import { askedOf } from "../PanelActs.ts"
import { profilesOf } from "../PanelLists.ts"
import { forRole, page } from "../Route.ts"

/* The first page, which lists what needs attention and shows the trends. */

const daySeconds = 86_400
/** For how many seconds the oldest job may be overdue before the page shows a warning, and before it shows an alarm. */
const late = { warning: 60, alarm: 600 }

const ageState = (seconds: number): "good" | "wait" | "bad" =>
  seconds > late.alarm ? "bad" : seconds > late.warning ? "wait" : "good"

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

/** Returns the count of a tile, or undefined if it took too long. The tile then says that the count is unknown. */
const orUnknown = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.map(Effect.option(self), Option.getOrUndefined)

/**
 * Returns the sweeps that have no waiting or running row, because an operator cancelled them. The next startup of a
 * worker enqueues them again.
 */
const stoppedIn = (config: Config, counted: Effect.Success<Activity["Service"]["queue"]> | undefined) => {
  const live = new Set((counted ?? []).filter(({ ready, running }) => ready + running > 0).map(({ kind }) => kind))
  return counted === undefined ? [] : [...sweepsOf(config)].filter((kind) => !live.has(kind))
}

const attention = Effect.fnUntraced(function*(config: Config) {
  const { expiring, losses, queue, refusals, totals } = yield* Activity
  const now = yield* currentSeconds
  const counted = yield* orUnknown(queue)
  const kinds = (counted ?? []).map((kind) => ({ ...kind, state: ageState(kind.oldestReadySeconds) }))
  const oldest = kinds.toSorted((one, other) => other.oldestReadySeconds - one.oldestReadySeconds)[0]
  const failing = yield* orUnknown(refusals)
  const lost = yield* orUnknown(losses)
  const processes = (yield* workers.list).map((worker) => workerObject(worker, now))
  const authorities = yield* crlRecords.heads(profilesOf(config))
  const firstToEnd = authorities.map(({ ca }) =>
    ca
  ).toSorted((one, other) => one.firstToEnd.notAfter - other.firstToEnd.notAfter)[0]
  const ofState = (state: string) => authorities.filter((one) => one.state === state).length
  return {
    kinds,
    isQueueKnown: counted !== undefined,
    stoppedSweeps: stoppedIn(config, counted),
    oldest,
    failedJobs: kinds.reduce((sum, { failed }) => sum + failed, 0),
    expiring: yield* orUnknown(expiring),
    totals: yield* orUnknown(totals),
    refusals: failing === undefined ? undefined : {
      count: failing.count,
      url: urlOf("/ui/audit", { outcome: "failure", since: rfc3339(failing.since) })
    },
    lost: lost === undefined || lost.count === 0
      ? undefined
      : { count: lost.count, url: urlOf("/ui/audit", { event: "changes_lost", since: rfc3339(lost.since) }) },
    workers: processes.filter(({ roles, stale }) => !stale && roles.includes("worker")).length,
    crls: {
      all: authorities.length,
      due: ofState("due"),
      expired: ofState("expired"),
      missing: ofState("missing"),
      stopped: ofState("stopped")
    },
    ca: firstToEnd === undefined ? undefined : {
      days: Math.max(0, Math.floor((firstToEnd.firstToEnd.notAfter - now) / daySeconds)),
      state: caStateOf(firstToEnd, now)
    }
  }
})

/** Returns the routes of the first page. */
export const overviewRoutes = (config: Config) => [
  forRole("viewer")("GET", "/ui/", (given) =>
    Effect.gen(function*() {
      // If the query is refused, only the chart shows the refusal, because an operator still needs the rest of the
      // page.
      const asked = askedOf(readTrends.input, given)
      const problem = Result.isFailure(asked) ? operatorProblemOf(asked.failure) : undefined
      const profiles = yield* profilesShown(config)
      return page("overview", "Overview", {
        ...yield* attention(config),
        degraded: profiles.filter(({ degraded }) => degraded !== undefined).map(({ name }) => name),
        bypassing: profiles.filter(({ challengeBypass }) => challengeBypass).map(({ name }) => name),
        profiles,
        chart: Result.isFailure(asked) ? undefined : yield* orUnknown(charted(config, asked.success)),
        problem
      }, problem === undefined ? {} : { status: problem.status })
    }))
]
