import { describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { assert } from "vitest"
import { leavesOf } from "../../src/operations/Leaves.ts"
import { foreignCa, madeAt } from "../support/LocalCa.ts"

describe("the leaves of many chains", () => {
  it.live("are in the order of the chains, and are parsed in several turns of the event loop", () =>
    Effect.gen(function*() {
      const chains = [1, 2].map((seconds) => foreignCa({ name: "a", notAfter: madeAt + seconds }).certificatePem)
      let turns = 0
      let next = setImmediate(() => {})
      const others = () => {
        turns++
        next = setImmediate(others)
      }
      others()
      const leaves = yield* leavesOf(
        Array.from({ length: 501 }, (_, number) => number < 500 ? chains[number % 2] : "x")
      )
      clearImmediate(next)
      assert.deepStrictEqual(
        leaves.map((leaf) => leaf?.notAfter),
        Array.from({ length: 501 }, (_, number) => number < 500 ? madeAt + 1 + number % 2 : undefined)
      )
      assert.isAtLeast(turns, 10)
    }))
})
