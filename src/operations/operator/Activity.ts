import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Busy } from "../../domain/OperatorError.ts"
import { makeSharedReading } from "../../engine/SharedReading.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentAsker } from "../../engine/sql/ReaderSemaphore.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as accountSearch from "../../store/AccountSearch.ts"
import * as auditSearch from "../../store/AuditSearch.ts"
import * as eabKeys from "../../store/eab/EabKeys.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import * as jobs from "./Jobs.ts"
import { readForOperator } from "./OperatorReads.ts"
import type { EndingWeek, Failures, IssuanceTimes } from "./OrderFigures.ts"
import * as orderFigures from "./OrderFigures.ts"
import type { Trend, TrendRange } from "./Trends.ts"
import { makeTrend, trendRanges } from "./Trends.ts"

type Reading<A> = Effect.Effect<A, Busy | StorageFailed, Database>

const queueMillis = 5000
const refusalMillis = 10_000
const totalsMillis = 60_000
const figuresMillis = 60_000
/** Of very many certificates each reading counts a million, and the weeks change slowly. */
const endingsMillis = 600_000
/** How long, in milliseconds, a page waits for values that are not essential. */
const totalsPatienceMillis = 2000

/**
 * Runs a reading for which all viewers wait. If the reading counted in the share of the operator who asked first, it
 * would wait behind that operator's other readings. So all such readings have a share of their own.
 */
const forAll = <A, E, R>(reading: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(reading, currentAsker, { host: "activity", network: "activity" })

const daySeconds = 86_400
/**
 * The state of the service, for the operators' first page and for monitoring programs. Every value is kept for some
 * seconds, so that many viewers cost the database no more than a single viewer.
 */
export class Activity extends Context.Service<Activity, {
  /** Counts over time, for one profile or for all profiles. */
  readonly trend: (profile: string | undefined, range: TrendRange) => Reading<Trend>
  /** The state of the queue, by kind of job. */
  readonly queue: Reading<Effect.Success<typeof jobs.queue>>
  /** The number of failures in the audit trail of the last day. `since` is the start of that day in epoch seconds. */
  readonly refusals: Reading<{ readonly count: number; readonly since: number }>
  /** The total number of records of each kind. */
  readonly totals: Reading<{ readonly accounts: number; readonly orders: number; readonly credentials: number }>
  /** Why the newest orders failed. */
  readonly failures: Reading<Failures>
  /** How long the newest certificates took. */
  readonly issuanceTimes: Reading<IssuanceTimes>
  /** How many certificates end in each of the next weeks. */
  readonly endings: Reading<ReadonlyArray<EndingWeek>>
}>()("acme/operations/Activity") {
  /** Provides the counts of each of these profiles, and of all profiles together. */
  static readonly layer = (profiles: ReadonlyArray<string>): Layer.Layer<Activity> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const trends = new Map<string, Reading<Trend>>()
        const keyOf = (profile: string | undefined, range: TrendRange) => `${range} ${profile ?? ""}`
        for (const profile of [undefined, ...profiles]) {
          for (const range of trendRanges) {
            trends.set(keyOf(profile, range), forAll(yield* makeTrend(profile, range)))
          }
        }
        const refusals: Reading<{ readonly count: number; readonly since: number }> = Effect.gen(function*() {
          const since = (yield* currentSeconds) - daySeconds
          return { count: yield* readForOperator(auditSearch.countMatches({ outcome: "failure", since })), since }
        })
        const totals = readForOperator(
          Effect.all({
            accounts: accountSearch.countMatches({}),
            orders: orderSearch.countMatches({}),
            credentials: eabKeys.count(undefined)
          }),
          totalsPatienceMillis
        )
        return {
          // If a name is not a profile of the configuration, the result is not kept. Otherwise made-up names could fill
          // the memory.
          trend: (profile, range) => trends.get(keyOf(profile, range)) ?? Effect.flatten(makeTrend(profile, range)),
          queue: forAll(yield* makeSharedReading(queueMillis, jobs.queue)),
          refusals: forAll(yield* makeSharedReading(refusalMillis, refusals)),
          totals: forAll(yield* makeSharedReading(totalsMillis, totals)),
          failures: forAll(yield* makeSharedReading(figuresMillis, orderFigures.failures)),
          issuanceTimes: forAll(yield* makeSharedReading(figuresMillis, orderFigures.issuanceTimes)),
          endings: forAll(yield* makeSharedReading(endingsMillis, orderFigures.endings))
        }
      })
    )
}
