import { Effect } from "effect"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { Late, SqlError } from "../../../src/engine/sql/SqlError.ts"
import { signedIn, useApi } from "../../support/Api.ts"
import { sqlite } from "../../support/Databases.ts"
import { callerAt, orderOf, profileOf } from "../../support/Graph.ts"

/* Lists, counts and searches that have run out of time (docs/contribute/decisions/admin.md, "Conventions"). */

const lists = [
  "accounts",
  "accounts/export",
  "orders",
  "orders?identifierContains=exam",
  "orders/export",
  "orders/export?identifierContains=exam",
  "expiring",
  "expiring/export",
  "eab",
  "eab/export",
  "audit",
  "audit?requestId=request-1",
  "audit/chain",
  "audit/export",
  "audit/export?requestId=request-1",
  "nonces",
  "jobs",
  "queue",
  "campaigns",
  "cas",
  "trends",
  "upstream-orders",
  "operators",
  "operators/anna/sessions",
  "account/sessions",
  "tokens",
  "search?q=a.example",
  "search?q=01890a5d-ac96-774b-bcce-b302099a8057",
  "search?q=0123456789abcdef"
]

describe("a list of the API", () => {
  const { config, test } = useApi(sqlite)

  test("may take ten seconds, and is answered 503 after that", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "anna", "admin")
      const caller = yield* callerAt(profileOf(config))
      yield* orderOf(caller, "a.example")
      const given: Array<number> = []
      const driver: Driver = {
        ...yield* Database,
        aside: (millis) => {
          given.push(millis)
          return new SqlError({ cause: new Late("not done in time"), message: "not done in time" })
        }
      }
      for (const path of [...lists, `accounts/${caller.accountId}`, `accounts/${caller.accountId}/orders`]) {
        given.length = 0
        const told = yield* Effect.provideService(ask(`/api/${path}`, held), Database, driver)
        const found = [path, told.status, told.json?.error, told.headers["retry-after"], given[0]]
        assert.deepStrictEqual(found, [path, 503, "busy", "5", 10_000])
      }
    }))

  test("is answered 503 if its request has no time left", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/api/orders", { isLate: true })
      assert.deepStrictEqual([told.status, told.json.error], [503, "busy"])
      assert.deepInclude(told.headers, { "retry-after": "5", "cache-control": "no-store" })
    }))
})
