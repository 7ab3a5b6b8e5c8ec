import { Clock, Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { enqueueJob, handler, knownKinds } from "../../../src/domain/words/JobKind.ts"
import type { AnyHandler } from "../../../src/engine/queue/Kind.ts"
import type { Outcome } from "../../../src/engine/queue/Outcome.ts"
import { Done, Reschedule, Retry } from "../../../src/engine/queue/Outcome.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { text } from "../../../src/engine/sql/Column.ts"
import { Database, transaction } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { all } from "../../../src/engine/sql/Query.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import { databases } from "../../support/Databases.ts"
import { column, count, eventsOf, sql } from "../../support/Graph.ts"
import { useQueue } from "../../support/UseQueue.ts"
import { sleeps, watched } from "../../support/Watched.ts"

const done: Outcome<Database> = Done()
const failing = (text: string) => ({ text, row: text })
const day = 86_400

const tuning = {
  poll_interval_ms: 1000,
  max_concurrent: 8,
  lease_seconds: 300,
  retry_base_seconds: 30,
  retry_max_seconds: 3600
}

// Owners on two machines, in the form that this version gives them.
const [here, there] = ["one:1:a:boot-1.5", "two:1:b:boot-2.5"]

const validation = (run: Effect.Effect<Outcome<Database>>, budgetMillis = 600_000): AnyHandler<Database> =>
  handler<"challenge_validate", Database>({
    kind: "challenge_validate",
    budgetMillis: () => budgetMillis,
    run: () => run,
    abandon: () => Effect.void
  })

const sweep = (run: Effect.Effect<Outcome<Database>>): AnyHandler<Database> =>
  handler<"nonce_sweep", Database>({
    kind: "nonce_sweep",
    reachSeconds: day,
    budgetMillis: () => 10_000,
    run: () => run,
    abandon: () => Effect.void
  })

const enqueue = (key: string) =>
  enqueueJob({
    kind: "challenge_validate",
    dedupKey: key,
    payload: { challenge_id: key, profile: "p", thumbprint: "t" }
  })

const lockStatement = statement({
  name: "test_job_lock",
  params: { key: text() },
  row: {},
  sql: () => "SELECT 1 FROM jobs WHERE dedup_key = :key FOR UPDATE"
})

/** A clock whose time of day is wrong, while it measures durations correctly. */
const wrong = (seconds: () => number) => <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.clockWith((clock) => {
    const lead = () => seconds() * 1000
    const other: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + lead(),
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (millis) => millis + lead())
    })
    return Effect.provideService(self, Clock.Clock, other)
  })

interface Steps {
  readonly renew: Effect.Effect<void, never, Database>
  readonly tend: Effect.Effect<void, never, Database>
  readonly pass: Effect.Effect<void, never, Database>
  readonly interruptOverdue: Effect.Effect<void>
}

const second = ({ interruptOverdue, renew, tend }: Steps) =>
  Effect.all([TestClock.adjust("1 second"), renew, tend, interruptOverdue], { discard: true })

describe.each(databases)("leases on $name", (backend) => {
  const { database, records, test } = useQueue(backend, { maxAttempts: 5, startsAt: 100 * day })

  const statuses = column("SELECT status FROM jobs ORDER BY dedup_key")

  /**
   * Makes a runner whose attempts never end, an effect that waits until an attempt has begun, and the number of
   * interrupted attempts.
   */
  const holding = Effect.fnUntraced(function*(owner: string, driver?: Driver) {
    const begun = yield* Deferred.make<void>()
    const seen = { interrupted: 0 }
    const run = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never).pipe(
      Effect.onInterrupt(() => Effect.sync(() => seen.interrupted++))
    )
    const made = Runner.make({ ...tuning, owner }, [validation(run)])
    const runner = yield* driver === undefined ? made : Effect.provideService(made, Database, driver)
    return { runner, begun: Deferred.await(begun), seen }
  })

  const finishing = (owner: string, isGone?: (owner: string) => boolean) =>
    Runner.make({ ...tuning, owner, ...(isGone === undefined ? {} : { isGone }) }, [validation(Effect.succeed(done))])

  test("free the row of a dead worker within about ten seconds", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const { begun, runner, seen } = yield* holding(there)
      yield* runner.pass
      yield* begun
      const other = yield* finishing(here)
      for (let passed = 0; passed < 60; passed++) {
        yield* second(runner)
        yield* other.pass
      }
      assert.deepStrictEqual(yield* statuses, ["running"])
      assert.deepStrictEqual(yield* column("SELECT attempts FROM jobs"), ["1"])
      // This worker is dead, so it renews nothing.
      let waited = 0
      for (; waited < 60 && (yield* statuses)[0] === "running"; waited++) {
        yield* TestClock.adjust("1 second")
        yield* other.pass
        yield* other.idle
      }
      assert.isAtMost(waited, 12)
      assert.isAtLeast(waited, 7)
      assert.deepStrictEqual(yield* statuses, ["done"])
      assert.deepStrictEqual(yield* column("SELECT attempts FROM jobs"), ["2"])
      assert.include(eventsOf(records), "db_job_leases_reclaimed")
      // In fact the first worker is alive. It learns that another worker now has the row, and ends its own attempt.
      assert.strictEqual(seen.interrupted, 0)
      yield* runner.renew
      yield* runner.idle
      assert.strictEqual(seen.interrupted, 1)
      assert.include(eventsOf(records), "job_lease_lost")
      assert.deepStrictEqual(yield* statuses, ["done"])
    }))

  test("end at once if their worker is known to be dead", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const { begun, runner } = yield* holding(there)
      yield* runner.pass
      yield* begun
      const next = yield* finishing(here, (owner) => owner === there)
      yield* next.pass
      yield* next.idle
      assert.deepStrictEqual(yield* statuses, ["done"])
    }))

  test("are not taken from other workers by a worker that was itself suspended", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const { begun, runner } = yield* holding(there)
      yield* runner.pass
      yield* begun
      const other = yield* finishing(here)
      yield* other.pass
      // Both workers were suspended, like processes on a machine that sleeps. The one that holds the row resumes
      // second.
      yield* TestClock.adjust("5 minutes")
      yield* other.pass
      assert.deepStrictEqual(yield* statuses, ["running"])
      yield* second(runner)
      yield* other.pass
      assert.deepStrictEqual(yield* statuses, ["running"])
    }))

  test("are not affected by a wrong clock or by a change of the clock", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      let lead = 0
      const set = wrong(() => lead)
      const { begun, runner } = yield* holding(there)
      yield* set(runner.pass)
      yield* begun
      const other = yield* finishing(here)
      for (const next of [40, -40, day, -day, 0]) {
        lead = next
        for (let passed = 0; passed < 15; passed++) {
          yield* set(second(runner))
          yield* other.pass
        }
      }
      assert.deepStrictEqual(yield* statuses, ["running"])
      // This worker is dead, and the end of its lease is tomorrow.
      lead = day
      for (let passed = 0; passed < 4; passed++) yield* set(second(runner))
      for (let passed = 0; passed < 12; passed++) {
        yield* TestClock.adjust("1 second")
        yield* other.pass
      }
      yield* other.idle
      assert.deepStrictEqual(yield* statuses, ["done"])
    }))

  test("end together with their attempts if the worker cannot renew them", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const real = database.driver()
      let isAway = false
      const failing: Driver = {
        ...real,
        single: (statement, params) =>
          isAway
            ? real.single({ ...statement, text: "SELECT * FROM no_such_table" }, [])
            : real.single(statement, params)
      }
      const { begun, runner, seen } = yield* holding(here, failing)
      const reached = <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.provideService(self, Database, failing)
      yield* reached(runner.pass)
      yield* begun
      isAway = true
      for (let passed = 0; passed < 8; passed++) yield* reached(second(runner))
      assert.strictEqual(seen.interrupted, 0)
      for (let passed = 0; passed < 4; passed++) yield* reached(second(runner))
      yield* reached(runner.idle)
      assert.strictEqual(seen.interrupted, 1)
      assert.deepStrictEqual(yield* statuses, ["ready"])
      assert.deepStrictEqual(yield* column("SELECT attempts FROM jobs"), ["0"])
      assert.strictEqual(yield* reached(runner.drain), 0, "a shutdown released none")
    }))

  test("end together with their attempts if the worker gets no answer, whichever statement it waits for", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const real = database.driver()
      let isAway = false
      const back = yield* Deferred.make<void>()
      const asked: Array<string> = []
      const silent: Driver = {
        ...real,
        single: (statement, params) =>
          Effect.suspend(() => {
            if (!isAway) return real.single(statement, params)
            asked.push(statement.text.slice(0, 11))
            return Effect.andThen(Deferred.await(back), real.single(statement, params))
          })
      }
      const begun = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const run = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never).pipe(
        Effect.onInterrupt(() => Deferred.succeed(ended, undefined))
      )
      yield* Effect.provideService(Runner.start({ ...tuning, owner: here }, [validation(run)]), Database, silent)
      yield* Deferred.await(begun)
      // By now the renewing, tending and polling loops have got their answers.
      const next = (yield* Clock.currentTimeMillis) + 1000
      yield* Effect.repeat(Effect.andThen(Effect.yieldNow, sleeps), {
        until: (ends) => ends.filter((at) => at === next).length === 3
      })
      isAway = true
      for (let passed = 0; passed < 14; passed++) yield* TestClock.adjust("1 second")
      yield* Deferred.await(ended)
      assert.include(asked, "SELECT id A", "the rows of others were asked for before")
      isAway = false
      yield* Deferred.succeed(back, undefined)
    }).pipe(watched))

  if (backend.dialect === "postgres") {
    test("are renewed even if the row of another lease is locked", () =>
      Effect.gen(function*() {
        for (const key of ["free", "locked"]) yield* enqueue(key)
        const { begun, runner, seen } = yield* holding(here)
        yield* runner.pass
        yield* begun
        const leases = Effect.map(
          column("SELECT lease_until FROM jobs ORDER BY dedup_key"),
          (times) => times.map(Number)
        )
        const [isLocked, mayEnd] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const stopped = Effect.provideService(
          transaction(
            all(lockStatement, { key: "locked" }).pipe(
              Effect.andThen(Deferred.succeed(isLocked, undefined)),
              Effect.andThen(Deferred.await(mayEnd))
            )
          ),
          Database,
          yield* database.another
        )
        const stopping = yield* Effect.forkChild(stopped)
        yield* Deferred.await(isLocked)
        const [, before] = yield* leases
        const other = yield* finishing(there)
        const both = Effect.andThen(second(runner), other.tend)
        for (let passed = 0; passed < 12; passed++) yield* both
        const meanwhile = yield* leases
        yield* Deferred.succeed(mayEnd, undefined)
        yield* Fiber.join(stopping)
        assert.deepStrictEqual(meanwhile, [100 * day + 22, before])
        for (let passed = 0; passed < 3; passed++) yield* both
        assert.deepStrictEqual(yield* leases, [100 * day + 23, 100 * day + 23])
        assert.deepStrictEqual(yield* statuses, ["running", "running"], "others that watch wait too")
        assert.strictEqual(seen.interrupted, 0)
      }))
  }

  test("last until the stored time if an earlier version made them", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const now = 100 * day
      yield* knownKinds.claim({ now, owner: "one:1:a", until: now + 95, limit: 1, kinds: ["challenge_validate"] })
      const other = yield* finishing(here)
      for (let passed = 0; passed < 95; passed++) {
        yield* TestClock.adjust("1 second")
        yield* other.pass
      }
      assert.deepStrictEqual(yield* statuses, ["running"])
      yield* TestClock.adjust("1 second")
      yield* other.pass
      yield* other.idle
      assert.deepStrictEqual(yield* statuses, ["done"])
    }))

  test("have no owner if the claim was never answered", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const now = 100 * day
      yield* knownKinds.claim({ now, owner: here, until: now + 10, limit: 1, kinds: ["challenge_validate"] })
      const runner = yield* finishing(here)
      for (let passed = 0; passed < 12; passed++) {
        yield* TestClock.adjust("1 second")
        yield* runner.pass
      }
      yield* runner.idle
      assert.deepStrictEqual(yield* statuses, ["done"])
    }))

  test("let a job count only the time of its attempts and the waits that they ask for", () =>
    Effect.gen(function*() {
      yield* enqueue("k")
      const spent = Effect.map(sql("SELECT spent_seconds AS s FROM jobs"), ([row]) => Number(row?.["s"]))
      const { begun, runner } = yield* holding(there)
      yield* runner.renew
      yield* runner.pass
      yield* begun
      for (let passed = 0; passed < 31; passed++) yield* second(runner)
      assert.strictEqual(yield* spent, 30)
      // This worker has been dead for an hour, so its rows are taken at once.
      yield* TestClock.adjust("1 hour")
      let taken = 0
      const next = yield* Runner.make({ ...tuning, owner: here, isGone: () => true }, [
        handler<"challenge_validate", Database>({
          kind: "challenge_validate",
          budgetMillis: () => 10_000,
          run: (_, job) =>
            Effect.as(
              Effect.sync(() => (taken = job.spentSeconds)),
              Retry(failing("no"), { atMost: 7 })
            ),
          abandon: () => Effect.void
        })
      ])
      yield* next.pass
      yield* next.idle
      assert.strictEqual(taken, 30)
      assert.strictEqual(yield* spent, 37)
    }))

  describe("a wrong clock", () => {
    /** Runs the jobs that are due for `many` seconds. */
    const seconds = (many: number, runner: Steps & { readonly idle: Effect.Effect<void, unknown> }) =>
      Effect.repeat(
        Effect.all([TestClock.adjust("1 second"), runner.pass, Effect.orDie(runner.idle)], { discard: true }),
        { times: many - 1 }
      )

    test("delays the jobs that it has written only until a few seconds after its correction", () =>
      Effect.gen(function*() {
        let ran = 0
        let swept = 0
        const handlers = [
          validation(Effect.sync(() => ++ran === 1 ? Retry(failing("not yet")) : done)),
          sweep(Effect.map(Clock.currentTimeMillis, (millis) => {
            swept++
            return Reschedule(Math.floor(millis / 1000) + day)
          }))
        ]
        let lead = day
        const set = wrong(() => lead)
        const runner = yield* set(Runner.make({ ...tuning, owner: here }, handlers))
        yield* set(runner.enqueuePeriodic())
        yield* set(enqueue("retried"))
        yield* set(seconds(2, runner))
        assert.deepStrictEqual([ran, swept], [1, 1])
        yield* set(enqueue("new"))
        lead = 0
        yield* set(seconds(2, runner))
        assert.deepStrictEqual([ran, swept], [2, 2], "what is new runs, and what comes round once more")
        assert.include(eventsOf(records), "server_clock_stepped")
        assert.include(eventsOf(records), "db_job_times_corrected")
        yield* set(seconds(32, runner))
        assert.deepStrictEqual([ran, swept], [3, 2], "what is to wait waits no longer than it would have")
      }))

    test("loses no job and runs none again and again if it is set an hour forward or back", () =>
      Effect.gen(function*() {
        let [ran, lead] = [0, 0]
        const set = wrong(() => lead)
        const runner = yield* set(Runner.make({ ...tuning, owner: here }, [
          validation(Effect.sync(() => {
            ran++
            return Retry(failing("not yet"), { atLeast: 1800 })
          }))
        ]))
        yield* enqueue("k")
        yield* set(seconds(3, runner))
        assert.strictEqual(ran, 1)
        lead = -3600
        yield* set(seconds(20, runner))
        assert.strictEqual(ran, 1, "an hour back: it has its wait from now")
        lead = 3600
        yield* set(seconds(20, runner))
        assert.strictEqual(ran, 2, "an hour on: due once, however long it was")
        lead = 0
        yield* set(seconds(20, runner))
        assert.strictEqual(ran, 2)
      }))

    test("makes a job due now if it has written a due time that no kind can have asked for", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        yield* sql(`UPDATE jobs SET run_at = run_at + ${day}`)
        const runner = yield* finishing(here)
        yield* seconds(1, runner)
        assert.deepStrictEqual(yield* statuses, ["done"])
      }))

    test("does not delay a job that is enqueued while it is ahead", () =>
      Effect.gen(function*() {
        const runner = yield* finishing(here)
        yield* runner.pass
        yield* wrong(() => 40)(enqueue("k"))
        yield* seconds(1, runner)
        assert.deepStrictEqual(yield* statuses, ["done"])
      }))

    test("does not affect a budget, which is measured as a duration", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        let lead = 0
        const set = wrong(() => lead)
        const started = yield* Deferred.make<void>()
        const runner = yield* set(Runner.make({ ...tuning, owner: here }, [
          validation(Effect.andThen(Deferred.succeed(started, undefined), Effect.never), 5000)
        ]))
        yield* set(runner.pass)
        yield* Deferred.await(started)
        lead = day
        yield* set(second(runner))
        assert.deepStrictEqual(yield* statuses, ["running"])
        lead = -day
        for (let passed = 0; passed < 5; passed++) yield* set(second(runner))
        yield* runner.idle
        assert.deepStrictEqual(yield* column("SELECT last_error FROM jobs"), [
          "{\"_tag\":\"BudgetSpent\"}"
        ])
      }))

    test("makes a presence with a time of tomorrow count as absent", () =>
      Effect.gen(function*() {
        const row = { owner: there, roles: "worker", version: "1", startedAt: 0 }
        const now = 100 * day
        yield* workers.present({ ...row, now: now + day })
        assert.isFalse(yield* workers.wasSeen("two", "worker", now - 30, now + 30))
        assert.strictEqual(yield* workers.sweep(now - 600, now + 600), 1)
        assert.strictEqual(yield* count("SELECT count(*) FROM workers"), 0)
        assert.isTrue(Exit.isSuccess(yield* Effect.exit(workers.remove(there))))
      }))
  })
})
