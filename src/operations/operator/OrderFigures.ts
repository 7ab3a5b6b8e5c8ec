import * as Effect from "effect/Effect"
import type { ProblemDocument } from "../../domain/ProblemDocument.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { countsOfEnds } from "../../store/orders/EndCounts.ts"
import { newestFailed } from "../../store/orders/FailedOrders.ts"
import { newestIssuanceSeconds } from "../../store/orders/IssuanceTimes.ts"
import { readForOperator } from "./OperatorReads.ts"

/*
 * Figures about orders for the operators' first page. Each reads a limited number of rows, however many orders there
 * are.
 */

const daySeconds = 86_400
/** How long, in milliseconds, a page waits for one of these figures. */
const patienceMillis = 2000

const failedDays = 7
const mostFailed = 2000

/** How many of the newest orders failed, by the type of their problem, the most frequent first. */
export interface Failures {
  /** The suffixes of the problem types. Orders whose problem has no type are counted under the empty text. */
  readonly types: ReadonlyArray<{ readonly type: string; readonly count: number }>
  readonly count: number
  /** The orders were placed since this epoch second. */
  readonly since: number
  readonly days: number
  /** Whether more orders failed than are counted. */
  readonly isCut: boolean
}

const suffixOf = ({ type = "" }: Partial<ProblemDocument>): string => type.slice(type.lastIndexOf(":") + 1)

/** Counts the newest failed orders of a week by the type of their problem. */
export const failures = readForOperator(
  Effect.gen(function*() {
    const since = (yield* currentSeconds) - failedDays * daySeconds
    const rows = yield* newestFailed({ since, limit: mostFailed })
    const counts = new Map<string, number>()
    for (const { challengeError, error } of rows) {
      const type = suffixOf(challengeError ?? error ?? {})
      counts.set(type, (counts.get(type) ?? 0) + 1)
    }
    const types = [...counts].map(([type, count]) => ({ type, count }))
      .toSorted((one, other) => other.count - one.count || (one.type < other.type ? -1 : 1))
    return { types, count: rows.length, since, days: failedDays, isCut: rows.length === mostFailed } satisfies Failures
  }),
  patienceMillis
)

const timedDays = 30
const mostTimed = 1000
/** The longest times of the groups, in seconds. The last group has every longer time. */
const groups = [1, 5, 15, 60, 300, 3600] as const

/** How long the newest certificates took, from the order to the certificate, in seconds. */
export interface IssuanceTimes {
  readonly count: number
  readonly days: number
  readonly median: number
  readonly percentile95: number
  /** How many certificates took at most this many seconds, and more than those of the group before. */
  readonly groups: ReadonlyArray<{ readonly upTo: number | undefined; readonly count: number }>
}

/** Returns the smallest value that is at least as large as this part of the values, which are sorted. */
const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? 0

/** Groups times in seconds. */
const issuanceTimesOf = (seconds: ReadonlyArray<number>): IssuanceTimes => {
  const sorted = seconds.toSorted((one, other) => one - other)
  const bounds = [...groups, undefined]
  return {
    count: sorted.length,
    days: timedDays,
    median: quantile(sorted, 0.5),
    percentile95: quantile(sorted, 0.95),
    groups: bounds.map((upTo, index) => {
      const above = bounds[index - 1] ?? -1
      return { upTo, count: sorted.filter((one) => one > above && one <= (upTo ?? Infinity)).length }
    })
  }
}

/** Returns how long the newest certificates of a month took. */
export const issuanceTimes = readForOperator(
  Effect.gen(function*() {
    const since = (yield* currentSeconds) - timedDays * daySeconds
    return issuanceTimesOf(yield* newestIssuanceSeconds({ since, limit: mostTimed }))
  }),
  patienceMillis
)

const weeks = 13
const weekSeconds = 7 * daySeconds
const mostOfWeek = 100_000

/** The certificates that end in a week. */
export interface EndingWeek {
  /** The first second of the week. It is a midnight in UTC, also if the week has begun. */
  readonly start: number
  readonly count: number
  /** Whether there are more certificates than are counted. */
  readonly isCut: boolean
}

/**
 * Counts the unrevoked certificates that end in each of the next thirteen weeks. The first week begins with today, and
 * certificates that have ended are left out.
 */
export const endings = readForOperator(
  Effect.gen(function*() {
    const now = yield* currentSeconds
    const today = Math.floor(now / daySeconds) * daySeconds
    const starts = Array.from({ length: weeks }, (_, index) => today + index * weekSeconds)
    const periods = starts.map((start) => [Math.max(now, start), start + weekSeconds] as const)
    const counts = new Map((yield* countsOfEnds(periods, mostOfWeek)).map(({ count, from }) => [from, count]))
    return periods.map(([from, to]): EndingWeek => {
      const count = counts.get(from) ?? 0
      return { start: to - weekSeconds, count, isCut: count === mostOfWeek }
    })
  }),
  patienceMillis
)
