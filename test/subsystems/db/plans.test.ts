import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { AccountId } from "../../../src/domain/Id.ts"
import * as authorizations from "../../../src/subsystems/db/authorizations.ts"
import type { Driver } from "../../../src/subsystems/db/Database.ts"
import { Database } from "../../../src/subsystems/db/Database.ts"
import * as orders from "../../../src/subsystems/db/orders.ts"
import { databases, useDatabase } from "../../support/Databases.ts"

/*
 * How SQLite, which decides without statistics, goes about statements over tables that only ever grow: issued orders
 * are never swept, so nothing that runs often may visit all of them.
 */

describe.each(databases.filter(({ dialect }) => dialect === "sqlite"))("plans on $name", (backend) => {
  const database = useDatabase(backend)

  /** The steps of the plan of the one statement that is run. */
  const planOf = Effect.fnUntraced(function*<A, E>(run: Effect.Effect<A, E, Database>) {
    const driver = database.driver()
    const steps: Array<string> = []
    const explaining: Driver = {
      ...driver,
      single: (statement, params) =>
        Effect.zipRight(
          Effect.map(
            driver.single({ ...statement, text: `EXPLAIN QUERY PLAN ${statement.text}`, reads: true }, params),
            (rows) => {
              for (const row of rows) steps.push(Object.values(row as object).map(String).join(" "))
            }
          ),
          driver.single(statement, params)
        )
    }
    yield* Effect.provideService(run, Database, explaining)
    return steps.join("\n")
  })

  it.effect("an account's challenges under way are counted from those under way", () =>
    Effect.gen(function*() {
      const plan = yield* planOf(authorizations.countInFlight(AccountId("00000000-0000-7000-8000-000000000000")))
      assert.match(plan, /(?:SCAN|SEARCH) fc USING (?:COVERING )?INDEX challenges_processing/)
      assert.notMatch(plan, /\(account_id=\?\)/)
    }))

  it.effect("challenges without a job are looked for among those under way", () =>
    Effect.gen(function*() {
      assert.match(yield* planOf(authorizations.findOrphaned(100, 1000)), /SCAN c USING INDEX challenges_processing/)
    }))

  it.effect("the daily sweep visits unfinished and failed orders alone", () =>
    Effect.gen(function*() {
      for (const run of [orders.sweep("p", 100, 500), authorizations.expire("p", 100, 500)]) {
        const plan = yield* planOf(run)
        assert.match(plan, /INDEX orders_status_created_at \(status=\? AND created_at<\?\)/)
        assert.notMatch(plan, /orders_profile_created_at|SCAN/)
      }
    }))
})
