import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { sleeps } from "./Watched.ts"

/*
 * A fiber that reads the database again and again, on a test clock. A read takes as long as the database needs. If the
 * clock moves during a read, the time passes before the fiber sleeps, and nothing wakes the fiber afterwards.
 */

/** The time between two ticks of the loop that looks for ended jobs while a fiber waits for the end of a job. */
const tickMillis = 10

/** Whether there is a fiber whose sleep ends within a second. The ticks of the loop do not count. */
const isAsleep = Effect.zipWith(
  Clock.currentTimeMillis,
  sleeps,
  (now, ends) => ends.some((at) => at > now + tickMillis && at <= now + 1000)
)

/** Waits, in real time, until a fiber sleeps before its next read. The test must be `watched`. */
export const asleep = Effect.repeat(Effect.andThen(Effect.yieldNow, isAsleep), { until: Boolean })

/** Advances the clock while the fiber sleeps, and stops it while the fiber reads, until a condition holds. */
export const wakenedUntil = Effect.fnUntraced(function*(isSo: () => boolean) {
  while (!isSo()) yield* (yield* isAsleep) ? TestClock.adjust("250 millis") : Effect.yieldNow
})

/** Returns the result of a fiber. The clock advances while the fiber sleeps, and stands still while it reads. */
export const wakened = Effect.fnUntraced(function*<A, E>(fiber: Fiber.Fiber<A, E>) {
  yield* wakenedUntil(() => fiber.pollUnsafe() !== undefined)
  return yield* Fiber.join(fiber)
})
