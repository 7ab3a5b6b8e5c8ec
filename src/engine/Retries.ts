import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"

const backoff = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("30 seconds")])
const beginsAnewAfterMillis = 300_000

/**
 * A schedule for work that waits for an unavailable server. The first wait is a second. Each further wait is twice as
 * long, up to half a minute. Every five minutes the schedule starts again, so that the waits are short again if the
 * server fails later.
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
