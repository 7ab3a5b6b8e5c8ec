import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { AccountId, OrderId } from "../../src/domain/Id.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Driver } from "../../src/engine/sql/Driver.ts"
import * as authorizations from "../../src/store/AuthorizationRows.ts"
import * as limits from "../../src/store/LimitRows.ts"
import * as expiredOrders from "../../src/store/orders/ExpiredOrders.ts"
import * as http01Tokens from "../../src/store/upstream/Http01Tokens.ts"
import * as upstreamOrders from "../../src/store/upstream/UpstreamOrderRows.ts"
import { sqlite, useDatabase } from "../support/Databases.ts"

/*
 * SQLite makes its plans without statistics. These tests check how SQLite executes statements on tables that only grow:
 * issued orders are never swept, so a frequent statement must not read all of them.
 */

describe("plans on SQLite", () => {
  const database = useDatabase(sqlite)

  /** Returns the plan of the only statement that `run` executes. */
  const planOf = Effect.fnUntraced(function*<A, E>(run: Effect.Effect<A, E, Database>) {
    const driver = database.driver()
    const steps: Array<string> = []
    const explaining: Driver = {
      ...driver,
      single: (statement, params) =>
        Effect.andThen(
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

  it.effect("count an account's challenges in progress without reading other challenges", () =>
    Effect.gen(function*() {
      const plan = yield* planOf(authorizations.countInFlight(AccountId("00000000-0000-7000-8000-000000000000")))
      assert.match(plan, /(?:SCAN|SEARCH) fc USING (?:COVERING )?INDEX challenges_processing/)
      assert.notMatch(plan, /\(account_id=\?\)/)
    }))

  it.effect("look for challenges without a job only among challenges in progress", () =>
    Effect.gen(function*() {
      assert.match(yield* planOf(authorizations.findOrphaned(100, 1000)), /SCAN c USING INDEX challenges_processing/)
    }))

  it.effect("find the row of a relayed order by the id of the order, also to update or end the row", () =>
    Effect.gen(function*() {
      const orderId = OrderId("00000000-0000-7000-8000-000000000000")
      const urls = { orderUrl: "o", finalizeUrl: "f", certificateUrl: "c" }
      const runs: ReadonlyArray<Effect.Effect<unknown, unknown, Database>> = [
        upstreamOrders.find(orderId),
        upstreamOrders.start(orderId, 100),
        upstreamOrders.opened({ orderId, ...urls, now: 100 }),
        upstreamOrders.issued({ orderId, ...urls, now: 100 }),
        upstreamOrders.end({ orderId, status: "valid", error: undefined, now: 100 })
      ]
      for (const run of runs) {
        assert.match(yield* planOf(run), /SEARCH upstream_orders USING INDEX \S+ \(order_id=\?\)/)
      }
    }))

  it.effect("find the owner of an upstream's order by the URL of that order", () =>
    Effect.gen(function*() {
      const orderId = OrderId("00000000-0000-7000-8000-000000000000")
      const by = /INDEX upstream_orders_url \(upstream_order_url=\?\)/
      assert.match(yield* planOf(upstreamOrders.claimed(["https://ca.example/1", "https://ca.example/2"])), by)
      assert.match(yield* planOf(upstreamOrders.opened({ orderId, orderUrl: "o", finalizeUrl: "f", now: 100 })), by)
    }))

  it.effect("find a token of a relay by its text, and expired tokens by their expiry", () =>
    Effect.gen(function*() {
      assert.match(
        yield* planOf(http01Tokens.find("token", 100)),
        /SEARCH http01_tokens USING PRIMARY KEY \(token=\?\)/
      )
      const plan = yield* planOf(http01Tokens.sweep(100, 500))
      assert.match(plan, /INDEX http01_tokens_expires_at \(expires_at<\?\)/)
      assert.notMatch(plan, /SCAN http01_tokens|TEMP B-TREE/)
    }))

  it.effect("look for expired orders only among orders of one status, and find their authorizations by the order", () =>
    Effect.gen(function*() {
      const afterId = OrderId("00000000-0000-7000-8000-000000000000")
      const plan = yield* planOf(
        expiredOrders.page({
          status: "invalid",
          profile: "p",
          createdBefore: 100,
          now: 100,
          afterTime: 1,
          afterId,
          limit: 500
        })
      )
      assert.match(plan, /INDEX orders_status_created_at \(status=\? AND created_at>\? AND created_at<\?\)/)
      assert.match(
        yield* planOf(authorizations.expire(afterId)),
        /SEARCH authorizations USING (?:COVERING )?INDEX \S+ \(order_id=\?\)/
      )
    }))

  it.effect("read only the newest rows of an account or a network to check a limit", () =>
    Effect.gen(function*() {
      const accountId = AccountId("00000000-0000-7000-8000-000000000000")
      const plans = {
        orders: yield* planOf(limits.orderBut(9, { rows: "orders", accountId, since: 100 })),
        names: yield* planOf(limits.orderBut(9, { rows: "names", accountId, since: 100 })),
        pending: yield* planOf(limits.pendingBut(9, { accountId, now: 100, since: 100 })),
        accounts: yield* planOf(limits.accountBut(9, { profile: "p", network: "192.0.2", since: 100 }))
      }
      const account =
        /SEARCH (?:orders|o) USING INDEX orders_account_id_id \(\(account_id,id\)>\(\?,\?\) AND account_id<\?\)/
      assert.match(plans.orders, account)
      assert.match(plans.names, account)
      assert.match(plans.names, /SEARCH i USING PRIMARY KEY \(order_id=\?\)/)
      assert.match(plans.pending, /SEARCH o USING INDEX orders_account_id/)
      assert.match(plans.pending, /SEARCH a USING INDEX \S+ \(order_id=\?\)/)
      const network = /INDEX accounts_profile_created_network \(profile=\? AND created_network=\? AND created_at>\?\)/
      assert.match(plans.accounts, network)
      for (const plan of Object.values(plans)) assert.notMatch(plan, /SCAN|TEMP B-TREE/)
    }))

  it.effect("read only unfinished and failed orders in the daily sweep", () =>
    Effect.gen(function*() {
      const plan = yield* planOf(expiredOrders.sweep("p", { createdBefore: 100, expiredBefore: 100, limit: 20 }))
      assert.match(plan, /INDEX orders_status_created_at \(status=\? AND created_at<\?\)/)
      assert.notMatch(plan, /orders_profile_created_at|SCAN/)
    }))
})
