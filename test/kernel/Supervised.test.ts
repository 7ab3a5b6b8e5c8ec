import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { supervised } from "../../src/kernel/Supervised.ts"
import type { Record } from "../../src/kernel/telemetry/EventLog.ts"
import { EventLog, layerMemory } from "../../src/kernel/telemetry/EventLog.ts"

const failures = (records: ReadonlyArray<Record>) =>
  records.filter(({ event }) => event === "server_loop_failed").map(({ fields }) => fields)

describe("work in the background", () => {
  it.effect("has begun when its caller goes on: what it listens for is not missed", () =>
    Effect.gen(function*() {
      let begun = false
      yield* supervised("job_polls", Effect.andThen(Effect.sync(() => void (begun = true)), Effect.never))
      assert.isTrue(begun)
    }))

  it.effect("outlives whoever starts it, and ends with its scope", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      let ended = false
      const work = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (ended = true)))
      const starter = yield* Effect.forkChild(Scope.provide(supervised("job_polls", work), scope))
      yield* Fiber.join(starter)
      yield* Effect.yieldNow
      assert.isFalse(ended)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(ended)
    }))

  it.effect("is recorded with its name when a defect ends it, and runs again after waits that grow", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const begunAt: Array<number> = []
      const work = Effect.flatMap(
        Effect.clockWith((clock) => clock.currentTimeMillis),
        (now) => begunAt.push(now) < 4 ? Effect.die(new Error("the row cannot be read")) : Effect.never
      )
      yield* supervised("job_claims", work)
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(begunAt, [0, 1000, 3000, 7000])
      assert.strictEqual(failures(records).length, 3)
      for (const { error, loop } of failures(records)) {
        assert.strictEqual(loop, "job_claims")
        assert.include(String(error), "the row cannot be read")
      }
      assert.isTrue(records.every(({ level }) => level === "error"))
    }).pipe(Effect.provide(layerMemory(records)))
  })

  it.effect("is recorded when an interruption of its own making ends it, which is no shutdown", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      let runs = 0
      yield* supervised("job_claims", Effect.suspend(() => ++runs < 2 ? Effect.interrupt : Effect.never))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(runs, 2)
      assert.strictEqual(failures(records).length, 1)
    }).pipe(Effect.provide(layerMemory(records)))
  })

  it.effect("ends for good where it has nothing left to do", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      let runs = 0
      const fiber = yield* supervised("generation_retired", Effect.sync(() => ++runs))
      assert.strictEqual(yield* Fiber.join(fiber), 1)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual(records, [])
    }).pipe(Effect.provide(layerMemory(records)))
  })

  it.effect("goes on where even its record cannot be written", () => {
    const broken = Layer.succeed(EventLog, {
      enabled: () => true,
      write: () => {
        throw new Error("no log")
      }
    })
    return Effect.gen(function*() {
      let runs = 0
      yield* supervised("job_claims", Effect.suspend(() => ++runs < 2 ? Effect.die("once") : Effect.never))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(runs, 2)
    }).pipe(Effect.provide(broken))
  })
})
