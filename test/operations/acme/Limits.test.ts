import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { AcmeError } from "../../../src/domain/AcmeError.ts"
import { problemOf, retryAfter } from "../../../src/domain/Problem.ts"
import { series } from "../../../src/domain/words/Series.ts"
import type { Database } from "../../../src/engine/sql/Database.ts"
import { Metrics } from "../../../src/engine/telemetry/Metrics.ts"
import * as Registry from "../../../src/engine/telemetry/Registry.ts"
import { databases } from "../../support/Databases.ts"
import type { World } from "../../support/Graph.ts"
import { accountKeyOf, callerAt, configOf, count, orderOf, profileOf, registerKey, sql } from "../../support/Graph.ts"
import { useWorld } from "../../support/UseWorld.ts"

const limited = (...keys: ReadonlyArray<string>) =>
  profileOf(configOf(`[order]\nmax_identifiers = 3\n[limits]\nwindow_seconds = 600\n${keys.join("\n")}`))

/** Returns the problem that a refused client gets. */
const told = (refused: Effect.Effect<unknown, unknown, Database | World>) =>
  Effect.map(Effect.flip(refused), (error) => {
    const { detail, status, type } = problemOf(error as AcmeError)
    return { status, type, detail, retryAfter: retryAfter(error as AcmeError) }
  })

const limit = (detail: string, seconds: number) => ({
  status: 429,
  type: "urn:ietf:params:acme:error:rateLimited",
  detail,
  retryAfter: seconds
})

describe.each(databases)("limits on $name", (backend) => {
  const { records, test } = useWorld(backend, { startsAt: 1_700_000_000 })

  test("apply only if they are configured", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(configOf()))
      for (let at = 0; at < 20; at++) yield* orderOf(caller, `a${at}.example`)
      for (let at = 0; at < 20; at++) yield* callerAt(profileOf(configOf()))
    }))

  test("permit the configured number of new orders within the window, and another order once the first is older than the window", () =>
    Effect.gen(function*() {
      const profile = limited("orders_per_account = 2")
      const caller = yield* callerAt(profile)
      yield* orderOf(caller, "a.example")
      yield* TestClock.adjust("100 seconds")
      yield* orderOf(caller, "b.example")
      assert.deepStrictEqual(
        yield* told(orderOf(caller, "c.example")),
        limit(
          "At most 2 new orders of this account are allowed within 600 s (limits.orders_per_account); try again at 2023-11-14T22:23:20Z.",
          500
        )
      )
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 2)
      const [record] = records.filter(({ event }) => event === "request_rate_limited")
      assert.deepStrictEqual(record?.fields, {
        limit: "orders_per_account",
        account_id: caller.accountId,
        address: "192.0.2.1"
      })
      yield* orderOf(yield* callerAt(profile), "c.example")
      yield* TestClock.adjust("499 seconds")
      assert.strictEqual((yield* told(orderOf(caller, "c.example"))).retryAfter, 1)
      yield* TestClock.adjust("1 second")
      yield* orderOf(caller, "c.example")
    }))

  test("count the names of a new order for its account before the order is made", () =>
    Effect.gen(function*() {
      const narrow = yield* callerAt(limited("names_per_account = 2"))
      const refused = yield* told(orderOf(narrow, "a.example", "b.example", "c.example"))
      assert.deepInclude(refused, { status: 400, detail: "An order names at most 2 identifiers." })
      const caller = yield* callerAt(limited("names_per_account = 4"))
      yield* orderOf(caller, "a.example", "b.example")
      yield* TestClock.adjust("10 seconds")
      yield* orderOf(caller, "a.example")
      assert.deepStrictEqual(
        yield* told(orderOf(caller, "c.example", "d.example")),
        limit(
          "At most 4 names in new orders of this account are allowed within 600 s (limits.names_per_account); try again at 2023-11-14T22:23:20Z.",
          590
        )
      )
      yield* orderOf(caller, "c.example")
    }))

  test("do not count authorizations that are no longer pending", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(limited("pending_authorizations_per_account = 3"))
      yield* orderOf(caller, "a.example", "b.example", "c.example")
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(
        yield* told(orderOf(caller, "d.example")),
        limit(
          "At most 3 pending authorizations of this account are allowed at once (limits.pending_authorizations_per_account); try again at 2023-11-14T23:14:20Z.",
          60
        )
      )
      yield* sql("UPDATE authorizations SET status = 'deactivated' WHERE identifier LIKE '%b.example%'")
      yield* orderOf(caller, "d.example")
      assert.strictEqual((yield* told(orderOf(caller, "e.example"))).status, 429)
      yield* TestClock.adjust("8 days")
      yield* orderOf(caller, "e.example")
    }))

  test("accept only the maximum number if 20 orders arrive at once", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(limited("orders_per_account = 5"))
      const made = yield* Effect.all(
        Array.from({ length: 20 }, (_, at) => Effect.result(orderOf(caller, `a${at}.example`))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(made.filter(({ _tag }) => _tag === "Success").length, 5)
      assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 5)
    }))

  test("count only new accounts of the same network", () =>
    Effect.gen(function*() {
      const profile = limited("accounts_per_network = 2")
      const register = (ip: string, key = accountKeyOf()) => registerKey(profile, key, { ip })
      const key = accountKeyOf()
      yield* register("192.0.2.1", key)
      yield* TestClock.adjust("1 second")
      yield* register("192.0.2.200")
      assert.deepStrictEqual(
        yield* told(register("192.0.2.3")),
        limit(
          "At most 2 new accounts from this network are allowed within 600 s (limits.accounts_per_network); try again at 2023-11-14T22:23:20Z.",
          599
        )
      )
      assert.isFalse((yield* register("192.0.2.1", key)).created)
      yield* register("192.0.3.1")
      for (const ip of ["2001:db8:1:1::1", "2001:db8:1:2::1"]) yield* register(ip)
      assert.strictEqual((yield* told(register("2001:db8:1:3::1"))).status, 429)
      yield* register("2001:db8:2::1")
      yield* TestClock.adjust("600 seconds")
      yield* register("192.0.2.3")
    }))

  test("are counted in the metrics when they are reached", () =>
    Effect.gen(function*() {
      const caller = yield* callerAt(limited("orders_per_account = 1"))
      yield* orderOf(caller, "a.example")
      yield* Effect.flip(orderOf(caller, "b.example"))
      const text = yield* Effect.flatMap(Metrics, ({ render }) => render(new Map()))
      assert.include(text, `acme_svc_rate_limited_total{role="x",profile="default",limit="orders_per_account"} 1`)
    }).pipe(Effect.provide(Registry.layer("x", series))))
})
