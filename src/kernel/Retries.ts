import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

const backoff = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("30 seconds")])
const beginsAnewAfterMillis = 300_000

/**
 * Tries again until what is away is back: after a second, then twice as long each time, and every half minute at last. What
 * goes away again more than five minutes later is tried after a second again; what stays away, every five minutes.
 */
export const untilBack = Schedule.fromStep(Effect.map(Schedule.toStep(backoff), (first) => {
  let step = first
  let begunAt: number | undefined
  return (now: number, input: unknown) => {
    begunAt ??= now
    if (now - begunAt < beginsAnewAfterMillis) return step(now, input)
    begunAt = now
    return Effect.flatMap(Schedule.toStep(backoff), (anew) => (step = anew)(now, input))
  }
}))
