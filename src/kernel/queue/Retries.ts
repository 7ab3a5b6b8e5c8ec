import * as Schedule from "effect/Schedule"

/**
 * Tries again until what is away is back: after a second, then twice as long each time, and every half minute at last. What
 * goes away again more than five minutes later is tried after a second again; what stays away, every five minutes.
 */
export const untilBack = Schedule.resetAfter(
  Schedule.union(Schedule.exponential("1 second"), Schedule.spaced("30 seconds")),
  "5 minutes"
)
