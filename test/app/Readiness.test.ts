import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { readiness } from "../../src/app/Readiness.ts"
import type { Role } from "../../src/domain/Role.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import { supervised } from "../../src/engine/Supervised.ts"
import { sqlite } from "../support/Databases.ts"
import { requestOf } from "../support/Handle.ts"
import { useStore } from "../support/UseTests.ts"

/* Tests the answer to a load balancer that asks whether a process is ready. */

describe("readiness", () => {
  const { test } = useStore(sqlite)
  const ask = (method: string, roles: ReadonlyArray<Role> = ["worker"]) =>
    Effect.flatMap(
      readiness(new Set(roles)),
      (paths) => paths.get("/ready")?.handle(requestOf(method, "/ready")) ?? Effect.die("no such path")
    )

  test("ends when a vital loop fails, but not when another loop fails", () =>
    Effect.gen(function*() {
      yield* supervised("trace_export", Effect.die("planted"))
      yield* TestClock.adjust("1 minute")
      const ready = yield* ask("GET")
      assert.deepStrictEqual([ready.status, ready.body], [200, `{"ready":true,"roles":["worker"]}`])
      yield* supervised("job_claims", Effect.die("planted"))
      yield* TestClock.adjust("1 second")
      const unready = yield* ask("HEAD")
      assert.deepStrictEqual(
        [unready.status, unready.body],
        [503, `{"ready":false,"roles":["worker"],"loops":["job_claims"]}`]
      )
    }))

  test("is reported even if the database accepts no writes, and the answer calls the database read-only", () =>
    Effect.gen(function*() {
      const database = yield* Database
      const readOnly = Database.of({ ...database, isReadOnly: () => true })
      const told = yield* Effect.provideService(ask("GET"), Database, readOnly)
      assert.deepStrictEqual(
        [told.status, told.body],
        [200, `{"ready":true,"roles":["worker"],"database":"read-only"}`]
      )
    }))

  test("is reported even if the standby is away, and only a process that serves operators mentions the standby", () =>
    Effect.gen(function*() {
      const database = yield* Database
      const standby = {
        driver: database,
        isUsable: Effect.succeed(false),
        state: () => ({ state: "away" as const }),
        primary: Effect.die("the database was queried"),
        connections: () => ({ idle: 0, busy: 0 })
      }
      const bodyOf = (roles: ReadonlyArray<Role>) =>
        Effect.map(
          Effect.provideService(ask("GET", roles), Database, Database.of({ ...database, standby })),
          ({ body, status }) => [status, body]
        )
      const operators = `{"ready":true,"roles":["acme","admin"],"standby":{"state":"away"}}`
      assert.deepStrictEqual(yield* bodyOf(["acme", "admin"]), [200, operators])
      assert.deepStrictEqual(yield* bodyOf(["worker"]), [200, `{"ready":true,"roles":["worker"]}`])
    }))

  test("can be requested only by GET and HEAD", () =>
    Effect.gen(function*() {
      const refused = yield* ask("POST")
      assert.deepStrictEqual([refused.status, refused.headers], [405, { allow: "GET, HEAD" }])
    }))
})
