import { Effect } from "effect"
import { currentSeconds } from "../kernel/Time.ts"
import * as auditTrend from "../store/AuditTrend.ts"
import { listed } from "./Listed.ts"

const ranges = {
  "24h": { bucketSeconds: 3600, buckets: 24 },
  "7d": { bucketSeconds: 6 * 3600, buckets: 28 },
  "30d": { bucketSeconds: 86_400, buckets: 30 }
} as const

/** The period that a trend covers. */
export type TrendRange = keyof typeof ranges

/** Every period. */
export const trendRanges = Object.keys(ranges) as ReadonlyArray<TrendRange>

const kindOf = {
  certificate_issued: "issued",
  certificate_issue_failed: "refused",
  certificate_revoke_failed: "refused",
  certificate_revoked: "revoked"
} as const

/**
 * Counts issuances, refusals and revocations in the audit trail, oldest bucket first. The last bucket is not over yet.
 * Buckets begin at full hours or days in UTC, so a past bucket has the same count at every call. Times are epoch
 * seconds.
 */
export const trend = (profile: string | undefined, range: TrendRange) =>
  listed(Effect.gen(function*() {
    const { buckets, bucketSeconds } = ranges[range]
    const last = Math.floor((yield* currentSeconds) / bucketSeconds)
    const first = last - buckets + 1
    const span = { since: first * bucketSeconds, until: (last + 1) * bucketSeconds, bucket: bucketSeconds }
    const rows = yield* auditTrend.trendOf({ profile, ...span })
    const empty = Array.from({ length: buckets }, (_, index) => ({
      start: (first + index) * bucketSeconds,
      issued: 0,
      refused: 0,
      revoked: 0
    }))
    for (const { count, event, slot } of rows) {
      const bucket = empty[slot - first]
      if (bucket !== undefined) bucket[kindOf[event]] += count
    }
    return { bucketSeconds, buckets: empty }
  }))

/** The answer of {@link trend}. */
export type Trend = Effect.Effect.Success<ReturnType<typeof trend>>
