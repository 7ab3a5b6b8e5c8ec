import { assert, describe } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { engineLoops } from "../../src/engine/Loops.ts"
import { bounds, Loops } from "../../src/engine/Loops.ts"
import { supervised } from "../../src/engine/Supervised.ts"
import { engineSeries } from "../../src/engine/telemetry/EngineSeries.ts"
import { EventLog } from "../../src/engine/telemetry/EventLog.ts"
import { Metrics } from "../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../src/engine/telemetry/Registry.ts"
import { lifeMillis } from "../../src/engine/Time.ts"
import { fieldsOf } from "../support/Graph.ts"
import { useTests } from "../support/UseTests.ts"

const failing = Effect.flatMap(Loops, (known) => Effect.map(lifeMillis, known.failing))
const troubled = Effect.flatMap(Loops, (known) => Effect.map(lifeMillis, known.troubled))

describe("work in the background", () => {
  const { records, test } = useTests()
  const failures = () => fieldsOf(records, "server_loop_failed")

  test("has begun before its caller continues, so it misses nothing that it listens for", () =>
    Effect.gen(function*() {
      let begun = false
      yield* supervised("job_polls", Effect.andThen(Effect.sync(() => void (begun = true)), Effect.never))
      assert.isTrue(begun)
    }))

  test("goes on after its caller has ended, and ends with its scope", () =>
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
      assert.deepStrictEqual(failures(), [])
    }))

  test("starts again after waits that grow when a defect ends it", () =>
    Effect.gen(function*() {
      const begunAt: Array<number> = []
      const work = Effect.flatMap(
        Effect.clockWith((clock) => clock.currentTimeMillis),
        (now) => begunAt.push(now) < 8 ? Effect.die(new Error("the row cannot be read")) : Effect.never
      )
      yield* supervised("tls_expiry", work)
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(begunAt, [0, 1, 3, 7, 15, 31, 61, 91].map((seconds) => seconds * 1000))
      assert.strictEqual(failures().length, 7)
      for (const { error, loop } of failures()) {
        assert.strictEqual(loop, "tls_expiry")
        assert.include(String(error), "the row cannot be read")
      }
      assert.isTrue(records.every(({ level }) => level === "error"))
    }))

  test("is counted by its name when it starts again", () =>
    Effect.gen(function*() {
      let runs = 0
      yield* supervised("job_claims", Effect.suspend(() => ++runs < 3 ? Effect.die("planted") : Effect.never))
      yield* TestClock.adjust("1 minute")
      const text = yield* Metrics.use(({ render }) => render(new Map()))
      assert.include(text, `acme_svc_loop_restarts_total{role="worker",loop="job_claims"} 2`)
    }).pipe(Effect.provide(Registry.layer("worker", engineSeries))))

  test("is logged when it interrupts itself, because this is not a shutdown", () =>
    Effect.gen(function*() {
      let runs = 0
      yield* supervised("job_claims", Effect.suspend(() => ++runs < 2 ? Effect.interrupt : Effect.never))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(runs, 2)
      assert.strictEqual(failures().length, 1)
    }))

  test("does not start again after it has ended normally", () =>
    Effect.gen(function*() {
      let runs = 0
      const fiber = yield* supervised("job_periodic", Effect.sync(() => ++runs))
      assert.strictEqual(yield* Fiber.join(fiber), 1)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(runs, 1)
      assert.deepStrictEqual(records, [])
    }))

  test("starts again even if its failure can be neither logged nor counted", () => {
    const broken = Layer.succeed(EventLog, {
      enabled: () => true,
      write: () => {
        throw new Error("no log")
      }
    })
    const uncounted = Layer.effect(
      Metrics,
      Effect.map(Metrics, (metrics) => ({
        ...metrics,
        add: () => {
          throw new Error("no metrics")
        }
      }))
    ).pipe(Layer.provide(Registry.layer("worker", engineSeries)))
    return Effect.gen(function*() {
      let runs = 0
      yield* supervised("job_claims", Effect.suspend(() => ++runs < 2 ? Effect.die("once") : Effect.never))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(runs, 2)
    }).pipe(Effect.provide(Layer.merge(broken, uncounted)))
  })
})

describe("background work that fails again and again", () => {
  const { test } = useTests()

  /** Work that fails as soon as it runs, until the test mends it. */
  const mortal = Effect.fnUntraced(function*(loop: keyof typeof engineLoops) {
    let isMended = false
    yield* supervised(loop, Effect.suspend(() => isMended ? Effect.never : Effect.die("planted")))
    return Effect.sync(() => void (isMended = true))
  })

  test("makes the process unready, until the work has run for ten seconds without a failure", () =>
    Effect.gen(function*() {
      const mend = yield* mortal("job_claims")
      assert.deepStrictEqual(yield* failing, [])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* failing, ["job_claims"])
      yield* mend
      yield* TestClock.adjust("2 seconds") // by now the work runs again
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual(yield* failing, ["job_claims"])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* failing, [])
    }))

  test("ends the process at the eighth failure in a row, if the process cannot serve or issue without the work", () =>
    Effect.gen(function*() {
      yield* mortal("trace_export")
      yield* mortal("job_claims")
      const { givenUp } = yield* Loops
      const ended = yield* Effect.forkChild(givenUp, { startImmediately: true })
      // the sum of the waits before the last failure: 1, 2, 4, 8, 16, 30 and 30
      yield* TestClock.adjust("90 seconds")
      assert.isUndefined(ended.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(ended.pollUnsafe(), Exit.succeed("job_claims"))
      assert.strictEqual(bounds.end, 8)
    }))

  test("neither makes the process unready nor ends it if the work is not vital", () =>
    Effect.gen(function*() {
      for (const loop of ["job_periodic", "trace_export", "tls_expiry"] as const) yield* mortal(loop)
      const { givenUp } = yield* Loops
      const ended = yield* Effect.forkChild(givenUp, { startImmediately: true })
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* failing, [])
      assert.deepStrictEqual(yield* troubled, ["job_periodic", "trace_export", "tls_expiry"])
      assert.isUndefined(ended.pollUnsafe())
    }))

  test("is not given up if it runs for a minute between failures, which resets the count", () =>
    Effect.gen(function*() {
      const { givenUp } = yield* Loops
      const ended = yield* Effect.forkChild(givenUp, { startImmediately: true })
      yield* supervised("job_polls", Effect.andThen(Effect.sleep("1 minute"), Effect.die("planted")))
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(ended.pollUnsafe())
      assert.deepStrictEqual(yield* failing, [])
    }))

  test("is no longer watched after its scope has ended", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Scope.provide(supervised("listener_sweep", Effect.die("planted")), scope)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* failing, ["listener_sweep"])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(yield* failing, [])
    }))
})
