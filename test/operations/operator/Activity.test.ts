import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { makeSharedReading } from "../../../src/engine/SharedReading.ts"
import { currentSeconds } from "../../../src/engine/Time.ts"
import { Activity } from "../../../src/operations/operator/Activity.ts"
import { databases } from "../../support/Databases.ts"
import { sql } from "../../support/Graph.ts"
import { useTests } from "../../support/UseTests.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* Tests the counts for people who watch the service, and how rarely the counts are read from the database. */

const now = 1_800_000_120

const row = (at: number, event: string, profile = "default", outcome = "success") =>
  sql(
    `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile)
     VALUES (${at}, '${event}', '${outcome}', 'acme', '${profile}')`
  )

describe.each(databases)("the activity of the service on $name", (backend) => {
  const { test } = useWorld(backend, { startsAt: now })
  const issuedOf = (profile?: string) =>
    Effect.flatMap(
      Activity,
      ({ trend }) => Effect.map(trend(profile, "24h"), ({ buckets }) => buckets.map(({ issued }) => issued))
    )

  test("reads the present bucket again after ten seconds, and a past bucket only once", () =>
    Effect.gen(function*() {
      yield* row(now - 3600, "certificate_issued")
      yield* row(now, "certificate_issued")
      assert.deepStrictEqual((yield* issuedOf()).slice(-2), [1, 1])
      yield* row(now - 3600, "certificate_issued")
      yield* row(now, "certificate_issued")
      assert.deepStrictEqual((yield* issuedOf()).slice(-2), [1, 1])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual((yield* issuedOf()).slice(-2), [1, 2])
      // Another profile has separate counts.
      assert.deepStrictEqual((yield* issuedOf("other")).slice(-2), [0, 0])
      assert.deepStrictEqual((yield* issuedOf("default")).slice(-2), [2, 2])
    }))

  test("reads a bucket again after its end, because rows may be committed late", () =>
    Effect.gen(function*() {
      const end = now - now % 3600 + 3600
      yield* TestClock.setTime((end + 59) * 1000)
      assert.deepStrictEqual((yield* issuedOf()).slice(-2), [0, 0])
      yield* row(end - 1, "certificate_issued")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual((yield* issuedOf()).slice(-2), [1, 0])
      yield* row(end - 1, "certificate_issued")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual((yield* issuedOf()).slice(-2), [1, 0])
    }))

  test("moves on with the hours, and contains nothing from before its range", () =>
    Effect.gen(function*() {
      yield* row(now - 23 * 3600, "certificate_issued")
      const { trend } = yield* Activity
      assert.strictEqual((yield* trend(undefined, "24h")).buckets[0]?.issued, 1)
      yield* TestClock.adjust("1 hour")
      const { buckets } = yield* trend(undefined, "24h")
      assert.strictEqual(buckets.length, 24)
      assert.strictEqual(buckets.at(-1)?.start, Math.floor((now + 3600) / 3600) * 3600)
      assert.isTrue(buckets.every(({ issued }) => issued === 0))
      yield* TestClock.adjust("3 days")
      assert.strictEqual((yield* trend(undefined, "24h")).buckets.length, 24)
    }))

  test("includes the failures of a day and the queue by kind", () =>
    Effect.gen(function*() {
      yield* row(now - 86_401, "certificate_issue_failed", "default", "failure")
      yield* row(now - 86_399, "certificate_issue_failed", "default", "failure")
      const { queue, refusals } = yield* Activity
      assert.deepStrictEqual(yield* refusals, { count: 1, since: now - 86_400 })
      assert.deepStrictEqual(yield* queue, [])
    }))
})

describe("a cached value", () => {
  const { test } = useTests()

  test("is read once for simultaneous callers, and again when it is too old", () =>
    Effect.gen(function*() {
      let reads = 0
      const kept = yield* makeSharedReading(1000, Effect.andThen(Effect.yieldNow, Effect.sync(() => ++reads)))
      assert.deepStrictEqual(yield* Effect.all([kept, kept, kept], { concurrency: 3 }), [1, 1, 1])
      yield* TestClock.adjust("999 millis")
      assert.strictEqual(yield* kept, 1)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* kept, 2)
      yield* TestClock.setTime(0)
      assert.strictEqual(yield* kept, 3)
    }))

  test("is read again after a failure", () =>
    Effect.gen(function*() {
      let reads = 0
      const kept = yield* makeSharedReading(
        1000,
        Effect.suspend(() => ++reads === 1 ? Effect.fail("no") : currentSeconds)
      )
      assert.strictEqual(yield* Effect.flip(kept), "no")
      assert.strictEqual(yield* kept, 0)
    }))
})
