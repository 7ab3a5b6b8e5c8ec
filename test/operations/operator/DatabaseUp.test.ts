import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { SqlError } from "../../../src/engine/sql/SqlError.ts"
import { make } from "../../../src/operations/operator/DatabaseUp.ts"
import { databases } from "../../support/Databases.ts"
import { useStore } from "../../support/UseTests.ts"

describe.each(databases)("the metric of whether $name answers", (backend) => {
  const { database, test } = useStore(backend)

  /** A driver that has the given answer to each statement. */
  const answering = (answer: ReturnType<Driver["single"]>): Driver => ({
    ...database.driver(),
    aside: undefined,
    single: () => answer
  })

  const told = (up: ReturnType<typeof make>) =>
    Effect.map(up, (found) => (found.get("acme_svc_database_up") ?? []).map(({ labels, value }) => [labels, value]))

  test("is reported by every process with the roles of that process", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* told(make("acme,admin")), [[{ role: "acme,admin" }, 1]])
    }))

  test("is 0 while the database refuses statements, and is 1 again a second after the database works", () =>
    Effect.gen(function*() {
      const up = make("acme")
      const away = answering(new SqlError({ cause: undefined, message: "planted" }))
      assert.deepStrictEqual(yield* told(Effect.provideService(up, Database, away)), [[{ role: "acme" }, 0]])
      assert.deepStrictEqual(yield* told(up), [[{ role: "acme" }, 0]], "it is not asked again at once")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* told(up), [[{ role: "acme" }, 1]])
    }))

  test("is 0 after two seconds without an answer", () =>
    Effect.gen(function*() {
      const over = yield* Deferred.make<ReadonlyArray<never>>()
      const silent = answering(Deferred.await(over))
      const fiber = yield* Effect.forkChild(told(Effect.provideService(make("acme"), Database, silent)))
      let seconds = 0
      for (; fiber.pollUnsafe() === undefined; seconds++) yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), [[{ role: "acme" }, 0]])
      assert.isAtMost(seconds, 3)
      yield* Deferred.succeed(over, [])
    }))
})
