import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { shed } from "../../../src/engine/http/HttpRefused.ts"
import { makeFairSemaphore } from "../../../src/engine/net/FairSemaphore.ts"

/** Admits requests as the surfaces do. */
const admissionOf = (count: number, waitMillis: number) => {
  const slots = makeFairSemaphore(count)
  return <A, E, R>(self: Effect.Effect<A, E, R>) => slots.takeWithin(waitMillis, self, shed)
}

/** A request that keeps its slot until the test releases it. */
const visitor = (admit: ReturnType<typeof admissionOf>) =>
  Effect.gen(function*() {
    const inside = yield* Deferred.make<void>()
    const leave = yield* Deferred.make<void>()
    const fiber = yield* Effect.forkChild(
      admit(Effect.andThen(Deferred.succeed(inside, undefined), Deferred.await(leave)))
    )
    yield* Effect.yieldNow
    return {
      fiber,
      entered: Deferred.await(inside),
      isInside: Deferred.isDone(inside),
      leave: Deferred.succeed(leave, undefined)
    }
  })

describe("admission", () => {
  it.effect("gives the next free slot to the request that has waited longest", () =>
    Effect.gen(function*() {
      const admit = admissionOf(1, 50)
      const [first, second, third] = yield* Effect.all([visitor(admit), visitor(admit), visitor(admit)])
      const inside = Effect.all([first.isInside, second.isInside, third.isInside])
      assert.deepStrictEqual(yield* inside, [true, false, false])
      yield* first.leave
      yield* second.entered
      assert.deepStrictEqual(yield* inside, [true, true, false])
      const late = yield* visitor(admit)
      yield* second.leave
      yield* third.entered
      assert.isFalse(yield* late.isInside)
    }))

  it.effect("gives no slot to a request that has waited too long", () =>
    Effect.gen(function*() {
      const admit = admissionOf(1, 50)
      const first = yield* visitor(admit)
      const second = yield* visitor(admit)
      yield* TestClock.adjust("49 millis")
      assert.isUndefined(second.fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.strictEqual((yield* Effect.flip(Fiber.join(second.fiber)))._tag, "Shed")
      yield* first.leave
      yield* Fiber.join(first.fiber)
      const third = yield* visitor(admit)
      assert.isTrue(yield* third.isInside)
    }))

  it.effect("refuses a request at once if there is neither a free slot nor a waiting time", () =>
    Effect.gen(function*() {
      const admit = admissionOf(1, 0)
      const first = yield* visitor(admit)
      const second = yield* visitor(admit)
      // The clock does not move.
      assert.strictEqual((yield* Effect.flip(Fiber.join(second.fiber)))._tag, "Shed")
      yield* first.leave
      yield* Fiber.join(first.fiber)
      assert.isTrue(yield* (yield* visitor(admit)).isInside)
    }))

  it.effect("never admits more than the configured number of requests, and loses no slot", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 3 }),
          fc.array(fc.constantFrom("come", "leave", "fail", "hang up", "hang up while called", "wait")),
          (slots, acts) =>
            Effect.runPromise(
              Effect.gen(function*() {
                const admit = admissionOf(slots, 1)
                let inside = 0
                let most = 0
                const enter = (until: Effect.Effect<void, string>) =>
                  Effect.acquireUseRelease(
                    Effect.sync(() => (most = Math.max(most, ++inside))),
                    () => until,
                    () => Effect.sync(() => inside--)
                  )
                const everybody: Array<Fiber.Fiber<void, unknown>> = []
                const visitors: Array<
                  { readonly fiber: Fiber.Fiber<void, unknown>; readonly until: Deferred.Deferred<void, string> }
                > = []
                for (const act of acts) {
                  if (act === "come") {
                    const until = yield* Deferred.make<void, string>()
                    const fiber = yield* Effect.forkChild(admit(enter(Deferred.await(until))))
                    visitors.push({ until, fiber })
                    everybody.push(fiber)
                  } else if (act === "leave") {
                    yield* Effect.forEach(visitors.splice(0, 1), ({ until }) => Deferred.succeed(until, undefined))
                  } else if (act === "fail") {
                    yield* Effect.forEach(visitors.splice(0, 1), ({ until }) => Deferred.fail(until, "fault"))
                  } else if (act === "hang up") {
                    yield* Effect.forEach(visitors.splice(-1, 1), ({ fiber }) =>
                      Effect.sync(() => fiber.interruptUnsafe()))
                  } else if (act === "hang up while called") {
                    // When the first request leaves, the next one in the queue starts at the same time.
                    const [leaving, called] = visitors.splice(0, 2)
                    if (leaving !== undefined) {
                      yield* Deferred.succeed(leaving.until, undefined)
                    }
                    called?.fiber.interruptUnsafe()
                  } else {
                    yield* Effect.sleep(2)
                  }
                  assert.isAtMost(most, slots)
                }
                yield* Effect.forEach(everybody, Fiber.interrupt)
                const again = yield* Effect.forEach(
                  Array.from({ length: slots }),
                  () =>
                    Effect.exit(admit(Effect.void)),
                  { concurrency: "unbounded" }
                )
                assert.isTrue(again.every(Exit.isSuccess))
                const all = yield* Effect.all(Array.from({ length: slots }, () => visitor(admit)))
                assert.isTrue(
                  (yield* Effect.all(all.map(({ isInside }) => isInside))).every(Boolean),
                  "a slot was lost"
                )
                yield* Effect.forEach(all, ({ leave }) => leave)
              })
            )
        ),
        { numRuns: 200, seed: 7 }
      )
    ))
})
