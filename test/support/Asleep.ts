import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { sleeps } from "./Watched.ts"

/*
 * A fiber that looks at the database again and again, on a test's clock. A look takes as long as the database takes: a
 * clock that is moved meanwhile has gone by before the fiber sleeps, and nobody wakes it any more.
 */

/** Whether somebody sleeps, for a second at most. */
const isAsleep = Effect.zipWith(
  Clock.currentTimeMillis,
  sleeps,
  (now, ends) => ends.some((at) => at > now && at <= now + 1000)
)

/** Waits, in real time, until a fiber sleeps until its next look. The test has to be `watched`. */
export const asleep = Effect.repeat(Effect.andThen(Effect.yieldNow, isAsleep), { until: Boolean })

/** The clock goes on while the fiber sleeps, and stands still while it looks, until something is so. */
export const wakenedUntil = Effect.fnUntraced(function*(isSo: () => boolean) {
  while (!isSo()) yield* (yield* isAsleep) ? TestClock.adjust("250 millis") : Effect.yieldNow
})

/** What a fiber ends with. The clock goes on while the fiber sleeps, and stands still while it looks. */
export const wakened = Effect.fnUntraced(function*<A, E>(fiber: Fiber.Fiber<A, E>) {
  yield* wakenedUntil(() => fiber.pollUnsafe() !== undefined)
  return yield* Fiber.join(fiber)
})
