import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { readiness } from "../../src/app/Readiness.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import { supervised } from "../../src/engine/Supervised.ts"
import { sqlite } from "../support/Databases.ts"
import { requestOf } from "../support/Handle.ts"
import { useStore } from "../support/UseTests.ts"

/* Tests whether a process is ready, as a load balancer asks. */

describe("readiness", () => {
  const { test } = useStore(sqlite)
  const ask = (method: string) =>
    Effect.flatMap(
      readiness(new Set(["worker"])),
      (paths) => paths.get("/ready")?.handle(requestOf(method, "/ready")) ?? Effect.die("no such path")
    )

  test("is reported while all vital work runs, and no longer when some of it fails repeatedly", () =>
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

  test("is reported even if the database accepts no writes, and the answer says so", () =>
    Effect.gen(function*() {
      const database = yield* Database
      const readOnly = Database.of({ ...database, isReadOnly: () => true })
      const told = yield* Effect.provideService(ask("GET"), Database, readOnly)
      assert.deepStrictEqual(
        [told.status, told.body],
        [200, `{"ready":true,"roles":["worker"],"database":"read-only"}`]
      )
    }))

  test("can be requested by GET and HEAD", () =>
    Effect.gen(function*() {
      const refused = yield* ask("POST")
      assert.deepStrictEqual([refused.status, refused.headers], [405, { allow: "GET, HEAD" }])
    }))
})
