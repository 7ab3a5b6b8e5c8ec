import { it } from "@effect/vitest"
import { Effect, Ref } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Database, StorageFailed } from "../../../src/engine/sql/Database.ts"
import { kept, keptTotal } from "../../../src/engine/sql/KeptCounts.ts"
import { sqlite, useDatabase } from "../../support/Databases.ts"

describe("totals that are cached", () => {
  const database = useDatabase(sqlite)

  /** Returns a count that has the result `rows`, and how often it ran. */
  const counting = Effect.fnUntraced(function*(rows: number) {
    const times = yield* Ref.make(0)
    const count = Effect.as(Ref.update(times, (many) => many + 1), rows)
    return { count, times: Ref.get(times) }
  })

  it.effect("are kept for a time that grows with their cost, if they are expensive", () =>
    database.use(Effect.gen(function*() {
      const cheap = yield* counting(100_000)
      for (let time = 0; time < 3; time++) assert.strictEqual(yield* keptTotal("cheap", {}, cheap.count), 100_000)
      assert.strictEqual(yield* cheap.times, 3)

      const costly = yield* counting(200_000)
      const read = keptTotal("costly", {}, costly.count)
      yield* read
      yield* TestClock.adjust("199 seconds")
      assert.strictEqual(yield* read, 200_000)
      assert.strictEqual(yield* costly.times, 1)
      yield* TestClock.adjust("1 second")
      yield* read
      assert.strictEqual(yield* costly.times, 2)

      const immense = yield* counting(1_000_000_000)
      yield* keptTotal("immense", {}, immense.count)
      yield* TestClock.adjust("15 minutes")
      yield* keptTotal("immense", {}, immense.count)
      assert.strictEqual(yield* immense.times, 2, "never for longer than fifteen minutes")
    })))

  it.effect("are separate for different filters and for different databases", () =>
    Effect.scoped(database.use(Effect.gen(function*() {
      const one = yield* counting(200_000)
      const other = yield* counting(300_000)
      assert.strictEqual(yield* keptTotal("orders", { profile: "a" }, one.count), 200_000)
      assert.strictEqual(yield* keptTotal("orders", { profile: "b" }, other.count), 300_000)
      assert.strictEqual(yield* keptTotal("orders", { profile: "a" }, other.count), 200_000)
      const elsewhere = yield* database.another
      const there = Effect.provideService(keptTotal("orders", { profile: "a" }, other.count), Database, elsewhere)
      assert.strictEqual(yield* there, 300_000)
    }))))

  it.effect("never include failures, and are at most a thousand", () =>
    database.use(Effect.gen(function*() {
      const failed = new StorageFailed({ statement: "count", detail: "not done", transient: false })
      const rows = (many: number) => many
      assert.strictEqual(yield* Effect.flip(kept("failing", rows, Effect.fail(failed))), failed)
      assert.strictEqual(yield* kept("failing", rows, Effect.succeed(5)), 5)

      const first = yield* counting(200_000)
      const last = yield* counting(200_000)
      yield* keptTotal("first", {}, first.count)
      for (let number = 0; number < 999; number++) yield* keptTotal("filler", { number }, Effect.succeed(200_000))
      yield* keptTotal("last", {}, last.count)
      for (const one of ["first", "last"]) {
        yield* keptTotal(one, {}, one === "first" ? first.count : last.count)
      }
      assert.deepStrictEqual([yield* first.times, yield* last.times], [2, 1])
    })))
})
