import { Effect } from "effect"
import { assert, describe } from "vitest"
import { text } from "../../../src/engine/sql/Column.ts"
import { first, run } from "../../../src/engine/sql/Query.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import { insert } from "../../store/NonceStatements.ts"
import { sqlite } from "../../support/Databases.ts"
import { useStore } from "../../support/UseTests.ts"

const joined = statement({
  name: "test_joined",
  params: { value: text() },
  row: { value: text(), other: text() },
  sql: () =>
    `SELECT one.value AS "value", other.value AS "other" FROM nonces one JOIN nonces other ON other.value = one.value
     WHERE one.value = :value`
})

/**
 * Counts how often the engine's driver makes a function for the rows of a statement, which it does once for each plan.
 */
const countPlans = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const original = globalThis.Function
    let plans = 0
    globalThis.Function = new Proxy(original, {
      apply: (target, self, words: Array<string>) => {
        plans++
        return Reflect.apply(target, self, words)
      }
    })
    return Effect.ensuring(
      Effect.map(self, () => plans),
      Effect.sync(() => void (globalThis.Function = original))
    )
  })

describe("a join on SQLite", () => {
  const { test } = useStore(sqlite)

  test("is planned only once, whatever values are bound", () =>
    Effect.gen(function*() {
      const values = ["one", "two", "three"]
      for (const value of values) yield* run(insert, { value })
      const plans = yield* countPlans(Effect.forEach(values, (value) => first(joined, { value })))
      assert.strictEqual(plans, 1)
    }))
})
