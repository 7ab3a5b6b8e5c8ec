import { Chunk, Clock, Effect, Fiber, TestClock } from "effect"

/*
 * A fiber that looks at the database again and again, on a test's clock. A look takes as long as the database takes: a
 * clock that is moved meanwhile has gone by before the fiber sleeps, and nobody wakes it any more.
 */

/** Whether somebody sleeps, for a second at most. */
const isAsleep = Effect.zipWith(
  Clock.currentTimeMillis,
  TestClock.sleeps(),
  (now, sleeps) => Chunk.some(sleeps, (due) => due > now && due <= now + 1000)
)

/** Waits, in real time, until a fiber sleeps until its next look. */
export const asleep = Effect.repeat(Effect.zipRight(Effect.yieldNow(), isAsleep), { until: Boolean })

/** What a fiber ends with. The clock goes on while the fiber sleeps, and stands still while it looks. */
export const wakened = Effect.fnUntraced(function*<A, E>(fiber: Fiber.RuntimeFiber<A, E>) {
  while ((yield* Fiber.poll(fiber))._tag === "None") {
    yield* (yield* isAsleep) ? TestClock.adjust("250 millis") : Effect.yieldNow()
  }
  return yield* Fiber.join(fiber)
})
