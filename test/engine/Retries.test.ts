import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { TestClock } from "effect/testing"
import { untilBack } from "../../src/engine/Retries.ts"

/** Returns the seconds at which an action is tried that succeeds once `isBack` is true. */
const tried = (isBack: (seconds: number) => boolean) =>
  Effect.gen(function*() {
    const at: Array<number> = []
    const attempt = Effect.flatMap(Clock.currentTimeMillis, (now) => {
      at.push(now / 1000)
      return isBack(now / 1000) ? Effect.void : Effect.fail("away")
    })
    const fiber = yield* Effect.forkChild(Effect.retry(attempt, untilBack), { startImmediately: true })
    yield* TestClock.adjust("10 minutes")
    return { at, isOver: fiber.pollUnsafe() !== undefined }
  })

describe("retries of an action whose resource is unavailable", () => {
  it.effect("come after one second, then after waits that double, and finally every thirty seconds", () =>
    Effect.gen(function*() {
      const { at, isOver } = yield* tried((seconds) => seconds >= 90)
      assert.deepStrictEqual(at, [0, 1, 3, 7, 15, 31, 61, 91])
      assert.isTrue(isOver)
    }))

  it.effect("start again with a wait of one second after five minutes, and never stop", () =>
    Effect.gen(function*() {
      const { at, isOver } = yield* tried(() => false)
      assert.isFalse(isOver)
      const begunAnew = at.findIndex((seconds, index) => index > 2 && seconds - (at[index - 1] ?? 0) === 1)
      assert.isAbove(at[begunAnew] ?? 0, 300)
      assert.isBelow(at[begunAnew] ?? 0, 400)
      const waits = at.slice(begunAnew).map((seconds, index) => seconds - (at[begunAnew + index - 1] ?? 0))
      assert.deepStrictEqual(waits.slice(0, 6), [1, 2, 4, 8, 16, 30])
    }))
})
