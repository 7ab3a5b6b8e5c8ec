import { Clock, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"

/* A test clock that knows who sleeps on it, which the plain test clock does not. */

/** The times in epoch milliseconds at which sleepers on the clock in force wake; empty on any other clock. */
const ends = new WeakMap<Clock.Clock, Set<{ readonly at: number }>>()

/** Runs a test on a clock for which {@link sleeps} says who sleeps. */
export const watched = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  TestClock.testClockWith((clock) => {
    const sleeping = new Set<{ readonly at: number }>()
    const sleep = (duration: Duration.Duration) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const end = { at: clock.currentTimeMillisUnsafe() + Duration.toMillis(duration) }
          sleeping.add(end)
          return end
        }),
        () => clock.sleep(duration),
        (end) => Effect.sync(() => sleeping.delete(end))
      )
    const watching: TestClock.TestClock = { ...clock, sleep }
    ends.set(watching, sleeping)
    return Effect.provideService(self, Clock.Clock, watching)
  })

/** The times in epoch milliseconds at which sleepers wake. The test has to be {@link watched}. */
export const sleeps: Effect.Effect<ReadonlyArray<number>> = Effect.withFiber((fiber) => {
  const sleeping = ends.get(fiber.getRef(Clock.Clock))
  return sleeping === undefined
    ? Effect.die(new Error("the clock of this test is not watched"))
    : Effect.succeed([...sleeping].map(({ at }) => at))
})

/**
 * Runs an effect to its end. While a fiber sleeps, the clock advances to the end of the shortest sleep. While nobody
 * sleeps the clock stands still, so that no time passes during work outside of it, such as a signature on a thread.
 */
export const sleptThrough = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  watched(Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(self)
    while (fiber.pollUnsafe() === undefined) {
      const ends = yield* sleeps
      yield* ends.length === 0 ? Effect.yieldNow : TestClock.setTime(Math.min(...ends))
    }
    return yield* Fiber.join(fiber)
  }))
