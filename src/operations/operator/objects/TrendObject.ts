import { rfc3339 } from "../../../engine/Time.ts"
import type { Trend } from "../Trends.ts"

/** Counts of issuances, refusals and revocations over time. */
export const trendObject = ({ buckets, bucketSeconds }: Trend) => ({
  buckets: buckets.map(({ start, ...counts }) => ({ start: rfc3339(start), ...counts })),
  bucketSeconds
})
