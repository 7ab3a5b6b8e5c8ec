import { assert, describe } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { withReadiness } from "../../src/app/Readiness.ts"
import { supervised } from "../../src/engine/Supervised.ts"
import { make as makeMetrics } from "../../src/surfaces/metrics/MetricsApp.ts"
import { requestOf } from "../support/Handle.ts"
import { useTests } from "../support/UseTests.ts"

/* Whether a process is ready, as a load balancer asks it. */

describe("readiness", () => {
  const { test } = useTests()
  const app = withReadiness(makeMetrics(Effect.succeed("scraped")), new Set(["worker"]))
  const ask = (method: string, path = "/ready") => {
    const request = requestOf(method, path)
    return app.route(request).handle(request)
  }

  test("is told while all vital work runs, and no longer when some of it keeps dying", () =>
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

  test("is asked by GET and HEAD of its own path; every other path is the app's", () =>
    Effect.gen(function*() {
      const refused = yield* ask("POST")
      assert.deepStrictEqual([refused.status, refused.headers], [405, { allow: "GET, HEAD" }])
      for (const path of ["/ready/", "/READY", "/readyz"]) assert.strictEqual((yield* ask("GET", path)).status, 404)
      assert.strictEqual((yield* ask("GET", "/metrics")).body, "scraped")
      assert.strictEqual(app.route(requestOf("GET", "/ready")).pattern, "/ready")
    }))
})
