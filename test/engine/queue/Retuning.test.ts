import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { handler } from "../../../src/domain/words/JobKind.ts"
import type { AnyHandler } from "../../../src/engine/queue/Kind.ts"
import type { Failure } from "../../../src/engine/queue/Outcome.ts"
import { Done, Reschedule } from "../../../src/engine/queue/Outcome.ts"
import { start } from "../../../src/engine/queue/Runner.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import { databases } from "../../support/Databases.ts"
import { breakWrites, mend } from "../../support/Faults.ts"
import { column, count, eventsOf } from "../../support/Graph.ts"
import { useQueue } from "../../support/UseQueue.ts"

/* A reload while the database accepts no new jobs. The periodic rows of the new configuration are written later. */

const options = {
  poll_interval_ms: 1000,
  max_concurrent: 8,
  lease_seconds: 300,
  retry_base_seconds: 30,
  retry_max_seconds: 3600,
  owner: "host:1:a"
}

/**
 * Returns a handler of a periodic job that has one row for each profile. A row ends if its profile no longer exists.
 */
const digests = (ran: (profile: string) => Effect.Effect<unknown>, ...profiles: ReadonlyArray<string>) =>
  handler<"notify_expiry_digest", Database>({
    kind: "notify_expiry_digest",
    subjects: profiles.map((profile) => ({ key: profile, payload: { profile } })),
    reachSeconds: 1_000_000,
    budgetMillis: () => 10_000,
    run: ({ profile }) => Effect.as(ran(profile), profiles.includes(profile) ? Reschedule(500_000) : Done()),
    abandon: () => Effect.void
  })

/** Prevents new jobs until `mend`. */
const breakDown = Effect.gen(function*() {
  const { dialect } = yield* Database
  yield* Effect.acquireRelease(breakWrites(dialect, { table: "jobs", operation: "INSERT" }), () => mend(dialect))
  return { mend: mend(dialect) }
})

const live = column("SELECT dedup_key FROM jobs WHERE status IN ('ready', 'running') ORDER BY dedup_key")

describe.each(databases)("a runner with changed settings on $name", (backend) => {
  const { records, test } = useQueue(backend)
  const delays = () => eventsOf(records).filter((event) => event === "job_periodic_delayed").length

  test("enqueues new jobs as soon as it can if the database does not accept them at first", () =>
    Effect.gen(function*() {
      const [first, second] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const handlers = (...profiles: ReadonlyArray<string>): ReadonlyArray<AnyHandler<Database>> => [
        digests((profile) => Deferred.succeed(profile === "a" ? first : second, undefined), ...profiles)
      ]
      const { retune } = yield* start(options, handlers("a"))
      yield* Deferred.await(first)
      const { mend } = yield* breakDown
      yield* retune(options, handlers("a", "b"))
      assert.strictEqual(delays(), 1, "the log says that it has to wait")
      assert.include(eventsOf(records), "job_runner_retuned")
      // The runner tries to write the missing rows while the database is still unavailable.
      yield* TestClock.adjust("1 second")
      yield* TestClock.adjust("1 second")
      yield* mend
      yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => Deferred.isDone(second) })
      assert.deepStrictEqual(yield* live, ["a", "b"])
      assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE dedup_key = 'b'"), 1)
    }))

  test("enqueues only the jobs of the last configuration if its settings change again in the meantime", () =>
    Effect.gen(function*() {
      const seen = new Set<string>()
      const [first, third] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const handlers = (...profiles: ReadonlyArray<string>): ReadonlyArray<AnyHandler<Database>> => [
        digests((profile) => {
          seen.add(profile)
          return Deferred.succeed(profile === "a" ? first : third, undefined)
        }, ...profiles)
      ]
      const { retune } = yield* start(options, handlers("a"))
      yield* Deferred.await(first)
      const { mend } = yield* breakDown
      yield* retune(options, handlers("a", "b"))
      yield* retune(options, handlers("a", "c"))
      assert.strictEqual(delays(), 2)
      yield* mend
      yield* Effect.repeat(TestClock.adjust("1 second"), { until: () => Deferred.isDone(third) })
      assert.deepStrictEqual([...seen].toSorted(), ["a", "c"])
      assert.deepStrictEqual(yield* live, ["a", "c"])
    }))

  test("does not log a delay while the database works", () =>
    Effect.gen(function*() {
      const ran = yield* Deferred.make<void>()
      const { retune } = yield* start<Database, Failure>(options, [])
      yield* retune(options, [digests(() => Deferred.succeed(ran, undefined), "b")])
      yield* Deferred.await(ran)
      assert.strictEqual(delays(), 0)
    }))
})
