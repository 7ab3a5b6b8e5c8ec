import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { assert, describe } from "vitest"
import { int } from "../../../src/engine/sql/Column.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import { all } from "../../../src/engine/sql/Query.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import { readForOperator } from "../../../src/operations/operator/OperatorReads.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { endless } from "../../support/Endless.ts"
import { openDriver } from "../../support/Graph.ts"

const wrong = statement({ name: "test_wrong", params: {}, row: { n: int }, sql: () => `SELECT n FROM no_such_table` })

describe.each(databases)("a list for operators on $name", (backend) => {
  const database = useDatabase(backend)

  const beside = <A, E>(body: Effect.Effect<A, E, Database>) =>
    Effect.scoped(Effect.flatMap(
      openDriver(database.url(), 2, 2000, 1),
      (driver) => Effect.provideService(body, Database, driver)
    ))

  it.live("is stopped when its time is over, and the error says when to try again", () =>
    beside(Effect.gen(function*() {
      const busy = yield* Effect.flip(readForOperator(all(endless, {}), 300))
      assert.deepInclude(busy, { _tag: "Busy", retryAfter: 5 } as const)
    })))

  it.live("fails with the error Busy if others are reading and no connection becomes free", () =>
    beside(Effect.gen(function*() {
      // On SQLite, one of the two connections writes, so all readers share the other. On PostgreSQL, both can read.
      const others = yield* Effect.forEach(
        [1, 2],
        () => Effect.forkChild(Effect.flip(readForOperator(all(endless, {}), 5000)))
      )
      yield* Effect.yieldNow
      const busy = yield* Effect.flip(readForOperator(all(endless, {}), 5000))
      assert.deepInclude(busy, { _tag: "Busy", retryAfter: 5 } as const)
      yield* Effect.forEach(others, Fiber.join)
    })))

  it.live("fails with the error of the statement if the statement is wrong", () =>
    beside(Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(readForOperator(all(wrong, {}))))._tag, "StorageFailed")
    })))
})
