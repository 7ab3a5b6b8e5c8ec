import * as fc from "fast-check"
import { assert, describe } from "vitest"
import { backoffSeconds } from "../../../src/engine/queue/Settlement.ts"
import { prop } from "../../support/Property.ts"

const policy = fc.tuple(fc.integer({ min: 1, max: 3600 }), fc.integer({ min: 1, max: 86_400 }))
  .map(([base, more]) => ({ retry_base_seconds: base, retry_max_seconds: base + more - 1 }))
const attempts = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 2 ** 31 }))
/** A random number, uniform in [0, 1). */
const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe("the wait before the next attempt", () => {
  prop("is never shorter than a second or longer than the maximum, however many attempts there were", [
    attempts,
    policy,
    chance
  ], (
    [count, given, random]
  ) => {
    const wait = backoffSeconds(count, given, random)
    assert.isTrue(Number.isSafeInteger(wait))
    assert.isAtLeast(wait, 1)
    assert.isAtMost(wait, given.retry_max_seconds)
  })

  prop("doubles from the base up to the maximum", [attempts, policy], ([count, given]) => {
    assert.strictEqual(backoffSeconds(1, given, 0), given.retry_base_seconds)
    assert.strictEqual(
      backoffSeconds(count + 1, given, 0),
      Math.min(given.retry_max_seconds, 2 * backoffSeconds(count, given, 0))
    )
  })

  prop("is shortened at random by at most a quarter", [attempts, policy, chance], ([count, given, random]) => {
    const [full, wait] = [backoffSeconds(count, given, 0), backoffSeconds(count, given, random)]
    assert.isAtMost(wait, full)
    assert.isAtLeast(wait, Math.floor(full * 0.75))
  })

  prop("may be shortened by any part of the quarter, so that jobs that failed together are tried at different times", [
    fc.integer({ min: 40, max: 3600 })
  ], ([base]) => {
    const given = { retry_base_seconds: base, retry_max_seconds: base }
    const waits = Array.from({ length: 100 }, (_, index) => backoffSeconds(1, given, index / 100))
    assert.isAtLeast(new Set(waits).size, Math.floor(Math.min(100, base / 4)))
    assert.isAtMost(Math.min(...waits), Math.ceil(base * 0.76))
  })

  prop("is never shorter than the wait before it while it is below the maximum, whatever the random numbers are", [
    fc.integer({ min: 1, max: 6 }),
    policy,
    chance,
    chance
  ], ([count, given, one, other]) => {
    fc.pre(backoffSeconds(count + 1, given, 0) === 2 * backoffSeconds(count, given, 0))
    assert.isAtLeast(backoffSeconds(count + 1, given, other), backoffSeconds(count, given, one))
  })
})
