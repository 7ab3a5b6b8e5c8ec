import { Clock, Duration, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"

/* A test clock that knows which fibers sleep on it, unlike the plain test clock. */

/** A sleep, with its length and the time in epoch milliseconds at which it ends. */
interface Sleep {
  readonly millis: number
  readonly at: number
}

/** The sleeps on each clock of a watched test. */
const asleep = new WeakMap<Clock.Clock, Set<Sleep>>()

/** Runs a test on a clock for which {@link sleeps} and {@link sleepLengths} report the sleeping fibers. */
export const watched = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  TestClock.testClockWith((clock) => {
    const sleeping = new Set<Sleep>()
    const sleep = (duration: Duration.Duration) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const millis = Duration.toMillis(duration)
          const one = { millis, at: clock.currentTimeMillisUnsafe() + millis }
          sleeping.add(one)
          return one
        }),
        () => clock.sleep(duration),
        (one) => Effect.sync(() => sleeping.delete(one))
      )
    const watching: TestClock.TestClock = { ...clock, sleep }
    asleep.set(watching, sleeping)
    return Effect.provideService(self, Clock.Clock, watching)
  })

const allSleeps: Effect.Effect<ReadonlyArray<Sleep>> = Effect.withFiber((fiber) => {
  const sleeping = asleep.get(fiber.getRef(Clock.Clock))
  return sleeping === undefined
    ? Effect.die(new Error("the clock of this test is not watched"))
    : Effect.succeed([...sleeping])
})

/** The times in epoch milliseconds at which sleepers wake. The test must be {@link watched}. */
export const sleeps = Effect.map(allSleeps, (all) => all.map(({ at }) => at))

/** The duration of each current sleep, in milliseconds. The test must be {@link watched}. */
export const sleepLengths = Effect.map(allSleeps, (all) => all.map(({ millis }) => millis))

/**
 * Runs an effect to its end. While a fiber sleeps, the clock advances to the end of the shortest sleep. While no fiber
 * sleeps the clock stands still, so that no time passes during work that does not use it, such as a signature on a
 * thread.
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
