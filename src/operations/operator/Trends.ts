import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Semaphore from "effect/Semaphore"
import type { Busy } from "../../domain/OperatorError.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentMillis } from "../../engine/Time.ts"
import * as auditTrend from "../../store/AuditTrend.ts"
import { readForOperator } from "./OperatorReads.ts"

const ranges = {
  "24h": { bucketSeconds: 3600, buckets: 24 },
  "7d": { bucketSeconds: 6 * 3600, buckets: 28 },
  "30d": { bucketSeconds: 86_400, buckets: 30 }
} as const

/** The period that a trend covers. */
export type TrendRange = keyof typeof ranges

/** All periods. */
export const trendRanges = Object.keys(ranges) as ReadonlyArray<TrendRange>

const kindOf = {
  certificate_issued: "issued",
  certificate_issue_failed: "refused",
  certificate_revoke_failed: "refused",
  certificate_revoked: "revoked"
} as const

/** The counts of one bucket. */
export interface Bucket {
  /** The first second of the bucket, in epoch seconds. */
  readonly start: number
  readonly issued: number
  readonly refused: number
  readonly revoked: number
}

/** The numbers of issuances, refusals and revocations over a period, oldest bucket first. */
export interface Trend {
  readonly bucketSeconds: number
  readonly buckets: ReadonlyArray<Bucket>
}

/** Counts the rows in the buckets from one slot to another, both included. Slots are numbered from the epoch. */
const counted = (profile: string | undefined, bucketSeconds: number, from: number, to: number) =>
  readForOperator(Effect.gen(function*() {
    const span = { since: from * bucketSeconds, until: (to + 1) * bucketSeconds, bucket: bucketSeconds }
    const found = Array.from({ length: to - from + 1 }, (_, index) => ({
      start: (from + index) * bucketSeconds,
      issued: 0,
      refused: 0,
      revoked: 0
    }))
    for (const { count, event, slot } of yield* auditTrend.trendOf({ profile, ...span })) {
      const bucket = found[slot - from]
      if (bucket !== undefined) bucket[kindOf[event]] += count
    }
    return found
  }))

const openMillis = 10_000
/**
 * The number of seconds for which recent counts may still change: the time of a row is set before the row is committed,
 * and the clocks of hosts differ a little.
 */
const settlingSeconds = 60

/**
 * Counts issuances, refusals and revocations in the audit trail. The last bucket is not over yet. Buckets begin at full
 * hours or days in UTC, so the count of a past bucket is the same at every call. A past bucket is counted once, and the
 * last bucket at most every ten seconds.
 */
export const makeTrend = (
  profile: string | undefined,
  range: TrendRange
): Effect.Effect<Effect.Effect<Trend, Busy | StorageFailed, Database>> =>
  Effect.map(
    Ref.make<{ readonly at: number; readonly buckets: ReadonlyArray<Bucket> }>({ at: -openMillis, buckets: [] }),
    (kept) => {
      const { buckets: many, bucketSeconds } = ranges[range]
      const turns = Semaphore.makeUnsafe(1)
      return turns.withPermits(1)(Effect.gen(function*() {
        const millis = yield* currentMillis
        const last = Math.floor(millis / 1000 / bucketSeconds)
        const first = last - many + 1
        const before = yield* Ref.get(kept)
        const isYoung = millis - before.at < openMillis && millis >= before.at
        if (isYoung && before.buckets.at(-1)?.start === last * bucketSeconds) {
          return { bucketSeconds, buckets: before.buckets }
        }
        const settled = before.buckets.filter(({ start }) =>
          start >= first * bucketSeconds && start + bucketSeconds + settlingSeconds <= before.at / 1000
        )
        // The kept counts must begin at the first slot. Otherwise they are too old to be used.
        const isWhole = settled[0]?.start === first * bucketSeconds
        const from = isWhole ? first + settled.length : first
        const buckets = [...isWhole ? settled : [], ...yield* counted(profile, bucketSeconds, from, last)]
        yield* Ref.set(kept, { at: millis, buckets })
        return { bucketSeconds, buckets }
      }))
    }
  )
