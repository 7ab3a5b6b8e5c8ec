import { Clock, Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { PayloadOf } from "../../../src/domain/words/JobKind.ts"
import { enqueueJob, handler, knownKinds } from "../../../src/domain/words/JobKind.ts"
import * as jobRows from "../../../src/engine/queue/Job.ts"
import type { AnyHandler, Handler } from "../../../src/engine/queue/Kind.ts"
import { roundsOf } from "../../../src/engine/queue/Kind.ts"
import type { Failure, Outcome } from "../../../src/engine/queue/Outcome.ts"
import { Done, Failed, Reschedule, Retry } from "../../../src/engine/queue/Outcome.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import * as Runner from "../../../src/engine/queue/Runner.ts"
import { start } from "../../../src/engine/queue/Runner.ts"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { Database, StorageFailed, transaction } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import { currentSeconds } from "../../../src/engine/Time.ts"
import { wakened } from "../../support/Asleep.ts"
import { databases } from "../../support/Databases.ts"
import { column, count, eventsOf, fieldsOf, sql } from "../../support/Graph.ts"
import { useQueue } from "../../support/UseQueue.ts"
import { sleepLengths, watched } from "../../support/Watched.ts"

type Validate = Handler<"challenge_validate", PayloadOf<"challenge_validate">, Database>

const done: Outcome<Database> = Done()

/** A failure whose text in the row differs from its text in the log. */
const failing = (text: string): Failure => ({ text, row: `row of ${text}` })

const validation = (run: Validate["run"], more: Partial<Validate> = {}): AnyHandler<Database> =>
  handler<"challenge_validate", Database>({
    kind: "challenge_validate",
    budgetMillis: () => 10_000,
    run,
    abandon: (_, { text }) => mark(`abandoned ${text}`),
    ...more
  })

const sweep = (run: Handler<"nonce_sweep", object, Database>["run"]): AnyHandler<Database> =>
  handler<"nonce_sweep", Database>({
    kind: "nonce_sweep",
    budgetMillis: () => 10_000,
    run,
    abandon: () => mark("abandoned a sweep")
  })

/** A write inside the transaction of an outcome, which the test can look for. */
const mark = (owner: string) => workers.present({ owner, roles: "", version: "", startedAt: 0, now: 0 })

const marks = column("SELECT owner FROM workers ORDER BY owner")

const options = {
  poll_interval_ms: 1000,
  max_concurrent: 8,
  lease_seconds: 300,
  retry_base_seconds: 30,
  retry_max_seconds: 3600,
  owner: "host:1:a"
}

const enqueue = (key: string, more: { readonly runAt?: number; readonly deadline?: number } = {}) =>
  enqueueJob({
    kind: "challenge_validate",
    dedupKey: key,
    payload: { challenge_id: key, profile: "p", thumbprint: "t" },
    ...more
  })

const jobRow = Effect.map(
  sql("SELECT status, attempts, run_at, last_error, lease_owner, lease_until FROM jobs"),
  (rows) =>
    rows.map((row) => ({
      status: row.status,
      attempts: Number(row.attempts),
      run_at: Number(row.run_at),
      last_error: row.last_error,
      leased: row.lease_owner !== null || row.lease_until !== null
    }))
)

describe.each(databases)("the queue on $name", (backend) => {
  const { database, records, test } = useQueue(backend)

  const pass = (
    runner: { readonly pass: Effect.Effect<void, never, Database>; readonly idle: Effect.Effect<void, unknown> }
  ) => Effect.andThen(runner.pass, Effect.orDie(runner.idle))

  describe("enqueuing", () => {
    test("returns the id of the live job of a key to a second caller", () =>
      Effect.gen(function*() {
        const id = yield* enqueue("k")
        assert.strictEqual(yield* enqueue("k"), id)
        assert.notStrictEqual(yield* enqueue("other"), id)
        yield* sql("UPDATE jobs SET status = 'running'")
        assert.strictEqual(yield* enqueue("k"), id, "running lives")
        for (const settled of ["done", "failed", "cancelled"]) {
          yield* sql(`UPDATE jobs SET status = '${settled}' WHERE status IN ('ready', 'running') AND dedup_key = 'k'`)
          assert.notStrictEqual(yield* enqueue("k"), id, settled)
        }
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE dedup_key = 'k'"), 4)
      }))

    test("treats an unreadable row as the live job of its key", () =>
      Effect.gen(function*() {
        const id = yield* enqueue("k")
        for (const column of ["created_at", "run_at", "deadline"]) {
          yield* sql(`UPDATE jobs SET ${column} = 9223372036854775807`)
          assert.strictEqual(yield* enqueue("k"), id, column)
          assert.strictEqual((yield* jobRows.findLive("challenge_validate", "k"))?.id, id, column)
        }
      }))

    test("makes one row and returns one id for 50 calls at the same time", () =>
      Effect.gen(function*() {
        const ids = yield* Effect.all(Array.from({ length: 50 }, () => enqueue("k")), { concurrency: "unbounded" })
        assert.strictEqual(new Set(ids).size, 1)
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 1)
      }))

    test("leaves no row and wakes no runner if the transaction is rolled back", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const waiter = yield* Effect.forkChild(queue.awakened)
        yield* Effect.exit(transaction(Effect.andThen(enqueue("k"), Effect.fail("no"))))
        yield* Effect.yieldNow
        assert.isNull(yield* fiberResult(waiter))
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 0)
        assert.notInclude(eventsOf(records), "job_enqueued")
        yield* enqueue("k")
        yield* Fiber.join(waiter)
      }))

    test("wakes a runner only after the commit", () =>
      Effect.gen(function*() {
        const queue = yield* Queue
        const woken = yield* Effect.forkChild(queue.awakened)
        yield* transaction(Effect.gen(function*() {
          yield* enqueue("k")
          yield* Effect.yieldNow
          assert.isNull(yield* fiberResult(woken))
        }))
        yield* Fiber.join(woken)
        const second = yield* Effect.forkChild(queue.awakened)
        yield* enqueue("k")
        yield* Effect.yieldNow
        assert.isNull(yield* fiberResult(second), "nothing new was queued")
        yield* Fiber.interrupt(second)
      }))

    test("writes the deadline, the times, the number of attempts, and a payload without absent members", () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(1_000_500)
        yield* enqueue("k", { deadline: 5000, runAt: 2000 })
        const [row] = yield* sql("SELECT * FROM jobs")
        const numbers = ["run_at", "deadline", "attempts", "max_attempts", "created_at"].map((name) =>
          Number(row?.[name])
        )
        assert.deepStrictEqual(numbers, [2000, 5000, 0, 3, 1000])
        assert.strictEqual(row?.payload, `{"challenge_id":"k","profile":"p","thumbprint":"t"}`)
      }))
  })

  describe("claiming", () => {
    const claim = (limit: number, owner = "me", now = 100) =>
      knownKinds.claim({ now, owner, limit, until: now + 40, kinds: ["challenge_validate", "nonce_sweep"] })

    test("takes the oldest due jobs first, as many as requested", () =>
      Effect.gen(function*() {
        for (const [key, runAt] of [["c", 30], ["a", 10], ["b", 20], ["future", 101]] as const) {
          yield* enqueue(key, { runAt })
        }
        const first = yield* claim(2)
        assert.sameMembers(first.map(({ dedupKey }) => dedupKey), ["a", "b"])
        assert.deepStrictEqual(first.map(({ attempts }) => attempts), [1, 1])
        const rows = yield* sql("SELECT lease_owner, lease_until FROM jobs WHERE dedup_key = 'a'")
        assert.deepStrictEqual(rows.map((row) => [row.lease_owner, Number(row.lease_until)]), [["me", 140]])
        assert.deepStrictEqual((yield* claim(9, "other")).map(({ dedupKey }) => dedupKey), ["c"])
        assert.deepStrictEqual(yield* claim(9), [], "none twice, none early")
      }))

    test("ignores jobs of kinds that the runner does not know", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        yield* sql("UPDATE jobs SET kind = 'signer_relay_issue'")
        assert.deepStrictEqual(yield* claim(9), [])
        const runner = yield* Runner.make(options, [validation(() => Effect.succeed(done))])
        yield* pass(runner)
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs"), ["ready"])
      }))

    test("never lets two runners on one database run the same job twice", () =>
      Effect.gen(function*() {
        const keys = Array.from({ length: 60 }, (_, index) => `k${index}`)
        for (const key of keys) yield* enqueue(key)
        const ran: Array<string> = []
        const handler = validation((payload) => Effect.as(Effect.sync(() => void ran.push(payload.challenge_id)), done))
        const other = yield* database.another
        const one = yield* Runner.make(options, [handler])
        const two = yield* Effect.provideService(
          Runner.make({ ...options, owner: "host:2:b" }, [handler]),
          Database,
          other
        )
        const turns = (runner: typeof one, driver: Driver) =>
          Effect.provideService(Effect.repeat(pass(runner), { times: 12 }), Database, driver)
        yield* Effect.all([turns(one, database.driver()), turns(two, other)], { concurrency: 2 })
        assert.deepStrictEqual([...ran].sort(), [...keys].sort())
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE status = 'done' AND attempts = 1"), 60)
      }))
  })

  describe("a runner that ends attempts", () => {
    test("lets a handler see the fiber of its attempt from the beginning to the settlement", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const told: Array<string> = []
        const handler = validation(() =>
          Effect.as(
            Effect.sync(() => told.push("runs")),
            Done({ commit: Effect.andThen(mark("written"), Effect.sync(() => told.push("settles"))) })
          )
        )
        const runner = yield* Runner.make(options, [{
          ...handler,
          begun: (fiber) => {
            told.push("begun")
            fiber.addObserver(() => told.push("over"))
          }
        }])
        yield* pass(runner)
        assert.deepStrictEqual(told, ["begun", "runs", "settles", "over"])
      }))

    test("settles a job that is done together with its writes", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const runner = yield* Runner.make(options, [
          validation(() => Effect.succeed(Done({ commit: mark("written") })))
        ])
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "done", attempts: 1, last_error: null, leased: false })
        assert.deepStrictEqual(yield* marks, ["written"])
        assert.include(eventsOf(records), "job_run_completed")
        yield* pass(runner)
        assert.strictEqual(yield* count("SELECT attempts FROM jobs"), 1)
      }))

    test("runs a job again after the backoff, and abandons it after the last attempt", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const runner = yield* Runner.make(options, [
          validation(() => Effect.succeed(Retry(failing("later"))))
        ])
        for (const [attempt, full] of [[1, 30], [2, 60]] as const) {
          yield* pass(runner)
          const [row] = yield* jobRow
          assert.deepInclude(row ?? {}, {
            status: "ready",
            attempts: attempt,
            last_error: "row of later",
            leased: false
          })
          const now = yield* count(`SELECT updated_at FROM jobs`)
          const delay = (row?.run_at ?? 0) - now
          assert.isTrue(delay <= full && delay >= full * 0.75, `${delay}`)
          yield* pass(runner)
          assert.strictEqual((yield* jobRow)[0]?.attempts, attempt, "not before its time")
          yield* TestClock.setTime((row?.run_at ?? 0) * 1000)
        }
        assert.deepStrictEqual(yield* marks, [])
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "failed", attempts: 3, last_error: "row of later" })
        assert.deepStrictEqual(yield* marks, ["abandoned later"])
        assert.strictEqual(eventsOf(records).filter((event) => event === "job_run_abandoned").length, 1)
      }))

    test("abandons a job at once if its outcome is a failure", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const runner = yield* Runner.make(options, [
          validation(() => Effect.succeed(Failed(failing("never"))))
        ])
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "failed", attempts: 1 })
        assert.deepStrictEqual(yield* marks, ["abandoned never"])
      }))

    test("undoes a settlement whose abandon step fails", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const runner = yield* Runner.make(options, [
          validation(() => Effect.succeed(Failed(failing("never"))), {
            abandon: () => new StorageFailed({ statement: "s", detail: "d", transient: false })
          })
        ])
        yield* runner.pass
        const idle = yield* Effect.forkChild(runner.idle)
        yield* wakened(idle)
        assert.isAtMost(yield* Clock.currentTimeMillis, 40_000)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "running", leased: true })
      }).pipe(watched))

    test("gives up a job with an unreadable payload at the first attempt", () =>
      Effect.gen(function*() {
        for (const payload of ["nothing", "{}", `{"challenge_id":1,"profile":"p","thumbprint":"t"}`, "[]"]) {
          yield* sql("DELETE FROM jobs")
          yield* enqueue("k")
          yield* sql(`UPDATE jobs SET payload = '${payload}'`)
          const runner = yield* Runner.make(options, [validation(() => Effect.die("never called"))])
          yield* pass(runner)
          assert.deepInclude((yield* jobRow)[0] ?? {}, {
            status: "failed",
            attempts: 1,
            last_error: "{\"_tag\":\"PayloadUnreadable\"}"
          })
        }
      }))

    test("gives up an unreadable row without an attempt", () =>
      Effect.gen(function*() {
        yield* enqueue("spoilt")
        yield* enqueue("good")
        yield* sql("UPDATE jobs SET deadline = 9223372036854775807 WHERE dedup_key = 'spoilt'")
        const ran: Array<string> = []
        const runner = yield* Runner.make(options, [
          validation(({ challenge_id }) => Effect.as(Effect.sync(() => ran.push(challenge_id)), done))
        ])
        yield* pass(runner)
        assert.deepStrictEqual(ran, ["good"])
        assert.deepStrictEqual(
          (yield* sql("SELECT dedup_key, status FROM jobs ORDER BY dedup_key")).map(({ dedup_key, status }) => [
            dedup_key,
            status
          ]),
          [["good", "done"], ["spoilt", "failed"]]
        )
        const [error = ""] = yield* column("SELECT last_error FROM jobs WHERE dedup_key = 'spoilt'")
        assert.match(error, /^\{"_tag":"RowUnreadable","detail":"deadline: holds /)
        assert.match((yield* marks).join(), /^abandoned the row of the job cannot be read: deadline: holds [^,]*$/)
      }))

    test("runs periodic work even if its row is unreadable", () =>
      Effect.gen(function*() {
        let runs = 0
        const runner = yield* Runner.make(options, [sweep(() => Effect.as(Effect.sync(() => void runs++), done))])
        yield* runner.enqueuePeriodic()
        yield* sql("UPDATE jobs SET deadline = 9223372036854775807")
        yield* pass(runner)
        assert.strictEqual(runs, 1)
        assert.deepStrictEqual(yield* marks, [])
      }))

    test("gives up a job without an attempt if its deadline has passed", () =>
      Effect.gen(function*() {
        yield* enqueue("k", { deadline: 50 })
        yield* TestClock.setTime(50_000)
        const runner = yield* Runner.make(options, [validation(() => Effect.die("never called"))])
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "failed", last_error: "{\"_tag\":\"DeadlinePassed\"}" })
        assert.deepStrictEqual(yield* marks, ["abandoned deadline passed"])
        assert.include(eventsOf(records), "job_deadline_passed")
      }))

    test("retries a job at once after a panic", () =>
      Effect.gen(function*() {
        yield* enqueue("bad")
        yield* enqueue("good")
        const runner = yield* Runner.make(options, [
          validation(({ challenge_id }) =>
            challenge_id === "bad" ? Effect.die(new Error("boom")) : Effect.succeed(done)
          )
        ])
        yield* pass(runner)
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs ORDER BY dedup_key"), ["ready", "done"])
        assert.deepInclude((yield* jobRow).find(({ status }) => status === "ready") ?? {}, { attempts: 1, run_at: 0 })
        yield* pass(runner)
        yield* pass(runner)
        assert.deepStrictEqual(yield* column("SELECT status FROM jobs ORDER BY dedup_key"), ["failed", "done"])
        assert.strictEqual(eventsOf(records).filter((event) => event === "job_run_panicked").length, 3)
        yield* enqueue("good")
        yield* pass(runner)
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE status = 'done'"), 2)
      }))

    test("treats a panic together with interruptions as a panic", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const runner = yield* Runner.make(options, [
          validation(() =>
            Effect.as(
              Effect.all([Effect.never, Effect.die(new Error("boom"))], { concurrency: 2, discard: true }),
              done
            )
          )
        ])
        for (let run = 0; run < 3; run++) yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "failed", attempts: 3 })
        assert.strictEqual(eventsOf(records).filter((event) => event === "job_run_panicked").length, 3)
      }))

    test("treats a defect in the writes of an outcome as a panic", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const discarded: Array<string> = []
        let isBroken = true
        const commit = Effect.suspend(() => isBroken ? Effect.die("a defect") : mark("written"))
        const runner = yield* Runner.make(options, [
          validation(() => Effect.succeed(Done({ commit, discarded: Effect.sync(() => void discarded.push("told")) })))
        ])
        yield* pass(runner)
        assert.deepStrictEqual([discarded, yield* marks], [["told"], []])
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "ready", attempts: 1, leased: false })
        assert.include(eventsOf(records), "job_run_panicked")
        isBroken = false
        yield* pass(runner)
        assert.deepStrictEqual([discarded, yield* marks], [["told"], ["written"]])
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "done", attempts: 2 })
      }))

    test("logs a defect in an abandon step", () =>
      Effect.gen(function*() {
        yield* enqueue("k", { deadline: 0 })
        const runner = yield* Runner.make(options, [
          validation(() => Effect.succeed(done), { abandon: () => Effect.die("a defect") })
        ])
        yield* pass(runner)
        assert.deepStrictEqual(fieldsOf(records, "job_run_panicked").map(({ error }) => error), ["a defect"])
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "running", leased: true })
      }))

    test("retries a job if the database fails inside the handler", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const runner = yield* Runner.make(options, [
          validation(() => new StorageFailed({ statement: "reading", detail: "gone", transient: false }))
        ])
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, {
          status: "ready",
          attempts: 1,
          last_error: "{\"_tag\":\"DatabaseFailed\",\"detail\":\"reading: gone\"}"
        })
        assert.isAbove((yield* jobRow)[0]?.run_at ?? 0, 0)
      }))

    test(
      "reschedules a job with zero attempts and without an error, however often",
      () =>
        Effect.gen(function*() {
          let at = 0
          const runner = yield* Runner.make(options, [
            sweep(() => {
              at += 60
              return Effect.succeed(Reschedule(at))
            })
          ])
          yield* runner.enqueuePeriodic()
          yield* runner.enqueuePeriodic()
          assert.strictEqual(yield* count("SELECT count(*) FROM jobs"), 1)
          for (let round = 0; round < 5; round++) {
            yield* pass(runner)
            assert.deepInclude((yield* jobRow)[0] ?? {}, {
              status: "ready",
              attempts: 0,
              run_at: at,
              last_error: null,
              leased: false
            })
            yield* TestClock.setTime(at * 1000)
          }
        }),
      2
    )

    test(
      "undoes the writes of a rescheduling if the lease was lost",
      () =>
        Effect.gen(function*() {
          const begun = yield* Deferred.make<void>()
          const go = yield* Deferred.make<void>()
          const runner = yield* Runner.make(options, [
            sweep(() =>
              Deferred.succeed(begun, undefined).pipe(
                Effect.andThen(Deferred.await(go)),
                Effect.as(Reschedule(60, { commit: mark("told") }))
              )
            )
          ])
          yield* runner.enqueuePeriodic()
          yield* runner.pass
          yield* Deferred.await(begun)
          yield* sql("UPDATE jobs SET lease_owner = 'host:2:b'")
          yield* Deferred.succeed(go, undefined)
          yield* runner.idle
          assert.deepStrictEqual(yield* marks, [])
          yield* sql("UPDATE jobs SET status = 'ready', lease_owner = NULL")
          yield* pass(runner)
          assert.deepStrictEqual(yield* marks, ["told"])
          assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "ready", run_at: 60 })
        }),
      2
    )

    test(
      "keeps a row for each subject of a kind, and runs all rows at startup and at a reload",
      () =>
        Effect.gen(function*() {
          const seen: Array<string> = []
          const round = (...profiles: ReadonlyArray<string>) =>
            handler<"notify_expiry_digest", Database>({
              kind: "notify_expiry_digest",
              subjects: profiles.map((profile) => ({ key: profile, payload: { profile } })),
              reachSeconds: 1_000_000,
              budgetMillis: () => 10_000,
              run: ({ profile }) =>
                Effect.sync(() => {
                  seen.push(profile)
                  return profiles.includes(profile) ? Reschedule(500_000) : done
                }),
              abandon: () => mark("abandoned")
            })
          const runner = yield* Runner.make(options, [round("a", "b")])
          yield* runner.enqueuePeriodic()
          yield* pass(runner)
          yield* pass(runner)
          assert.deepStrictEqual(seen.splice(0).toSorted(), ["a", "b"])
          runner.retune(options, [round("b", "c")])
          yield* runner.enqueuePeriodic(roundsOf([round("a", "b")]))
          yield* pass(runner)
          assert.deepStrictEqual(seen.splice(0).toSorted(), ["a", "b", "c"])
          const live = "SELECT dedup_key FROM jobs WHERE status = 'ready' ORDER BY dedup_key"
          assert.deepStrictEqual(yield* column(live), ["b", "c"])
        }),
      2
    )

    test("never gives up a periodic job, whether it panics or fails", () =>
      Effect.gen(function*() {
        let turn = 0
        const runner = yield* Runner.make(options, [
          sweep(() =>
            turn++ % 2 === 0 ? Effect.die("boom") : new StorageFailed({ statement: "s", detail: "d", transient: false })
          )
        ])
        yield* runner.enqueuePeriodic()
        for (let round = 0; round < 10; round++) {
          yield* pass(runner)
          assert.isAbove(
            Number((yield* jobRow)[0]?.run_at),
            yield* currentSeconds,
            "not at once: it would run without end"
          )
          yield* TestClock.adjust("2 hours")
        }
        assert.strictEqual(turn, 10)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "ready" })
        assert.deepStrictEqual(yield* marks, [])
      }), 2)
  })

  describe("a runner with budgets and leases", () => {
    test("interrupts, cleans up and retries an attempt that exceeds its budget", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const started = yield* Deferred.make<void>()
        let cleaned = false
        const runner = yield* Runner.make(options, [
          validation(() =>
            Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
              Effect.onInterrupt(() => Effect.sync(() => void (cleaned = true)))
            )
          )
        ])
        yield* runner.pass
        yield* Deferred.await(started)
        yield* TestClock.adjust(9999)
        yield* runner.interruptOverdue
        assert.isFalse(cleaned, "within its budget")
        yield* TestClock.adjust(1)
        yield* runner.interruptOverdue
        yield* runner.idle
        assert.isTrue(cleaned)
        assert.deepInclude((yield* jobRow)[0] ?? {}, {
          status: "ready",
          attempts: 1,
          last_error: "{\"_tag\":\"BudgetSpent\"}"
        })
        assert.isAbove((yield* jobRow)[0]?.run_at ?? 0, 10)
      }))

    test("never gives an attempt a budget beyond the deadline of its job", () =>
      Effect.gen(function*() {
        yield* enqueue("k", { deadline: 4 })
        const started = yield* Deferred.make<void>()
        const runner = yield* Runner.make(options, [
          validation(() => Effect.andThen(Deferred.succeed(started, undefined), Effect.never))
        ])
        yield* runner.pass
        yield* Deferred.await(started)
        yield* TestClock.adjust(4000)
        yield* runner.interruptOverdue
        yield* runner.idle
        yield* TestClock.adjust("1 hour")
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "failed", last_error: "{\"_tag\":\"DeadlinePassed\"}" })
      }))

    test("claims the oldest of 100 000 jobs by an index", () =>
      Effect.gen(function*() {
        const isSqlite = backend.dialect === "sqlite"
        yield* TestClock.setTime(1_000_000_000)
        yield* sql(
          isSqlite
            ? `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
               WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
               SELECT randomblob(16), iif(i % 2 = 0, 'challenge_validate', 'nonce_sweep'), 'q' || i,
                 '{"challenge_id":"c","profile":"p","thumbprint":"t"}', 'ready', 500000 + i, 0, 3, 0, 0 FROM n`
            : `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at)
               SELECT gen_random_uuid(), CASE WHEN i % 2 = 0 THEN 'challenge_validate' ELSE 'nonce_sweep' END, 'q' || i,
                 '{"challenge_id":"c","profile":"p","thumbprint":"t"}', 'ready', 500000 + i, 0, 3, 0, 0
               FROM generate_series(1, 100000) i`
        )
        yield* sql("ANALYZE jobs")
        const driver = database.driver()
        const plans: Array<string> = []
        const explaining: Driver = {
          ...driver,
          single: (statement, params) => {
            if (!statement.text.startsWith("UPDATE jobs SET status = 'running'")) {
              return driver.single(statement, params)
            }
            const text = `EXPLAIN ${isSqlite ? "QUERY PLAN " : ""}${statement.text}`
            return Effect.andThen(
              Effect.map(driver.single({ ...statement, text, reads: true }, params), (rows) => {
                plans.push(JSON.stringify(rows))
              }),
              driver.single(statement, params)
            )
          }
        }
        const runner = yield* Effect.provideService(
          Runner.make(options, [validation(() => Effect.succeed(done))]),
          Database,
          explaining
        )
        yield* Effect.provideService(pass(runner), Database, explaining)
        assert.strictEqual(plans.length, 1)
        assert.include(plans[0], "jobs_due")
        assert.notMatch(plans[0] ?? "", isSqlite ? /SCAN jobs|TEMP B-TREE/ : /Seq Scan on jobs|Sort/)
        assert.deepStrictEqual(
          yield* column("SELECT dedup_key FROM jobs WHERE status = 'done' ORDER BY run_at"),
          Array.from({ length: 32 }, (_, index) => `q${2 * index + 2}`)
        )
      }))

    test("claims the row of a dead runner again after its lease", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        yield* knownKinds.claim({ now: 0, owner: "dead", until: 0 + 40, limit: 1, kinds: ["challenge_validate"] })
        const runner = yield* Runner.make(options, [validation(() => Effect.succeed(done))])
        yield* TestClock.setTime(40_000)
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "running" }, "the lease lasts to its end")
        yield* TestClock.setTime(41_000)
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "done", attempts: 2 })
        assert.include(eventsOf(records), "db_job_leases_reclaimed")
      }))

    test("gives up a row without another attempt if its attempts are used up", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        yield* sql("UPDATE jobs SET attempts = 3")
        const runner = yield* Runner.make(options, [validation(() => Effect.die("never called"))])
        yield* pass(runner)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "failed", last_error: "{\"_tag\":\"AttemptsUsedUp\"}" })
        assert.deepStrictEqual(yield* marks, ["abandoned the attempts are used up"])
      }))

    test("discards a result together with its writes if its lease was lost", () =>
      Effect.gen(function*() {
        for (
          const stolen of [
            "lease_owner = 'other'",
            "attempts = attempts + 1",
            "status = 'ready', lease_owner = NULL, lease_until = NULL",
            "status = 'cancelled'"
          ]
        ) {
          yield* sql("DELETE FROM jobs")
          records.length = 0
          yield* enqueue("k")
          const runner = yield* Runner.make({ ...options, max_concurrent: 1 }, [
            validation(() => Effect.as(sql(`UPDATE jobs SET ${stolen}`), Done({ commit: mark("written") })))
          ])
          yield* pass(runner)
          assert.deepStrictEqual(yield* marks, [], stolen)
          assert.notInclude(yield* column("SELECT status FROM jobs"), "done", stolen)
          assert.deepStrictEqual(
            eventsOf(records).filter((event) => event.startsWith("job_") && event !== "job_enqueued"),
            ["job_lease_lost"]
          )
        }
      }))

    test("runs no more than max_concurrent attempts at once", () =>
      Effect.gen(function*() {
        const payload = { order_id: "o", profile: "p", csr: "", client: {} }
        const queue = yield* Queue
        for (let index = 0; index < 7; index++) {
          yield* enqueueJob({ kind: "signer_issue", dedupKey: `k${index}`, payload })
        }
        const [full, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        let running = 0
        let most = 0
        const runner = yield* Runner.make({ ...options, max_concurrent: 3 }, [
          handler<"signer_issue", Database>({
            kind: "signer_issue",
            budgetMillis: () => 10_000,
            run: () =>
              Effect.gen(function*() {
                most = Math.max(most, ++running)
                if (running === 3) yield* Deferred.succeed(full, undefined)
                yield* Deferred.await(go)
                running--
                return done
              }),
            abandon: () => Effect.void
          })
        ])
        yield* runner.pass
        yield* runner.pass
        yield* Deferred.await(full)
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE status = 'running'"), 3)
        yield* queue.awakened // This takes the signal of the jobs that were enqueued before.
        const signal = yield* Effect.forkChild(queue.awakened)
        yield* Deferred.succeed(go, undefined)
        yield* runner.idle
        yield* Fiber.join(signal)
        yield* pass(runner)
        yield* pass(runner)
        assert.strictEqual(most, 3)
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE status = 'done'"), 7)
      }))

    test("claims again in the next pass after a failure of the database during a claim", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const driver = database.driver()
        let away = true
        const flaky: Driver = {
          ...driver,
          single: (statement, params) =>
            away
              ? driver.single({ ...statement, text: "SELECT * FROM no_such_table" }, [])
              : driver.single(statement, params)
        }
        const runner = yield* Effect.provideService(
          Runner.make(options, [validation(() => Effect.succeed(done))]),
          Database,
          flaky
        )
        yield* Effect.provideService(pass(runner), Database, flaky)
        away = false
        yield* Effect.provideService(pass(runner), Database, flaky)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "done" })
      }))
  })

  describe("a runner from its start to its end", () => {
    test("lets attempts finish while it drains", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const [started, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const runner = yield* Runner.make(options, [
          validation(() => Effect.as(Effect.andThen(Deferred.succeed(started, undefined), Deferred.await(go)), done))
        ])
        yield* runner.pass
        yield* Deferred.await(started)
        const draining = yield* Effect.forkChild(runner.drain)
        yield* TestClock.adjust(4999)
        yield* Deferred.succeed(go, undefined)
        assert.strictEqual(yield* Fiber.join(draining), 0)
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "done" })
      }))

    test("hands back what still runs after five seconds of a drain without counting the attempt", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        yield* sql("UPDATE jobs SET attempts = 1")
        const started = yield* Deferred.make<void>()
        const runner = yield* Runner.make(options, [
          validation(() => Effect.andThen(Deferred.succeed(started, undefined), Effect.never))
        ])
        yield* runner.pass
        yield* Deferred.await(started)
        assert.strictEqual((yield* jobRow)[0]?.attempts, 2)
        const draining = yield* Effect.forkChild(runner.drain)
        yield* TestClock.adjust(5000)
        assert.strictEqual(yield* Fiber.join(draining), 1)
        const [row] = yield* jobRow
        assert.deepInclude(row ?? {}, { status: "ready", attempts: 1, last_error: null, leased: false })
        assert.isAtMost(row?.run_at ?? 99, 5)
      }))

    test("runs or hands back the rows whose claim was in progress when it stopped, without waiting for their lease", () =>
      Effect.gen(function*() {
        yield* enqueue("k")
        const driver = database.driver()
        const [claimed, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const slow: Driver = {
          ...driver,
          single: (statement, params) =>
            statement.text.startsWith("UPDATE jobs SET status = 'running'")
              ? Effect.tap(driver.single(statement, params), () =>
                Effect.uninterruptible(Effect.andThen(Deferred.succeed(claimed, undefined), Deferred.await(go))))
              : driver.single(statement, params)
        }
        const runner = yield* Effect.provideService(
          Runner.make(options, [validation(() => Effect.succeed(done))]),
          Database,
          slow
        )
        const passing = yield* Effect.forkChild(Effect.provideService(runner.pass, Database, slow))
        yield* Deferred.await(claimed)
        const stopping = yield* Effect.forkChild(Fiber.interrupt(passing))
        yield* Effect.yieldNow
        yield* Deferred.succeed(go, undefined)
        yield* Fiber.join(stopping)
        yield* runner.drain
        assert.include(["done", "ready"], (yield* jobRow)[0]?.status)
      }))

    test("logs due jobs of unknown kinds and leaves them alone", () =>
      Effect.gen(function*() {
        const ids = [yield* enqueue("one"), yield* enqueue("two")]
        const { stop } = yield* start(options, [sweep(() => Effect.succeed(Reschedule(60)))])
        const unknown = records.filter(({ event }) => event === "job_kind_unknown").map(({ fields }) => fields)
        // The record names any one of these jobs.
        const named = unknown[0]?.["job_id"]
        assert.deepStrictEqual(unknown, [{ kind: "challenge_validate", job_id: named, count: 2 }])
        assert.include(ids, named)
        yield* stop
        assert.strictEqual(
          yield* count(
            "SELECT count(*) FROM jobs WHERE kind = 'challenge_validate' AND status = 'ready' AND attempts = 0"
          ),
          2
        )
      }))

    test("claims jobs only between its start and its end", () =>
      Effect.gen(function*() {
        const ran = yield* Deferred.make<void>()
        const { stop } = yield* start(options, [validation(() => Effect.as(Deferred.succeed(ran, undefined), done))])
        yield* enqueue("k")
        yield* Deferred.await(ran)
        assert.strictEqual(yield* stop, 0)
        assert.strictEqual(yield* stop, 0, "the same answer again")
        assert.deepInclude((yield* jobRow)[0] ?? {}, { status: "done" })
        yield* enqueue("later")
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* count("SELECT count(*) FROM jobs WHERE status = 'ready'"), 1)
        assert.includeMembers([...eventsOf(records)], ["job_runner_started", "job_runner_stopped"])
      }))

    test("finds due work when it polls, even without a signal", () =>
      Effect.gen(function*() {
        const ran = yield* Deferred.make<void>()
        yield* start(options, [validation(() => Effect.as(Deferred.succeed(ran, undefined), done))])
        yield* enqueue("k", { runAt: 3 })
        yield* TestClock.adjust(2500)
        assert.isFalse(yield* Deferred.isDone(ran))
        const [fiber] = [yield* Effect.forkChild(Deferred.await(ran))]
        yield* Effect.repeat(TestClock.adjust(1000), { until: () => Deferred.isDone(ran) })
        yield* Fiber.join(fiber)
      }))

    test("polls again after growing pauses when a poll has found work", () =>
      Effect.gen(function*() {
        const runner = yield* Runner.make(options, [validation(() => Effect.succeed(done))])
        assert.strictEqual(runner.pollMillis(), 1000)
        yield* enqueue("k")
        const pauses = yield* Effect.forEach(
          Array.from({ length: 7 }),
          () => Effect.map(runner.pass, runner.pollMillis)
        )
        assert.deepStrictEqual(pauses, [50, 100, 200, 400, 800, 1000, 1000])
        yield* runner.idle
      }))

    test("checks budgets while an attempt runs, and otherwise wakes at most once a second", () =>
      Effect.gen(function*() {
        // The test takes the lengths of the sleeps and not the remaining times, because a loop that woke between two
        // seconds stays between them.
        const shortest = Effect.gen(function*() {
          yield* TestClock.adjust(1000)
          // The renewing, tending and polling loops first read the database.
          return yield* Effect.map(
            Effect.repeat(Effect.andThen(Effect.yieldNow, sleepLengths), { until: (lengths) => lengths.length >= 3 }),
            (lengths) => Math.min(...lengths)
          )
        })
        const begun = yield* Deferred.make<void>()
        const over = yield* Deferred.make<void>()
        const forever = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(over))
        yield* start(options, [validation(() => Effect.as(forever, done))])
        assert.isAtLeast(yield* shortest, 1000)
        yield* enqueue("k")
        yield* Deferred.await(begun)
        assert.isAtMost(yield* shortest, 100)
        yield* Deferred.succeed(over, undefined)
        // After the poll that found the job, further polls follow after growing pauses.
        yield* Effect.repeat(shortest, { until: (millis) => millis === 1000 })
      }).pipe(watched))
  })
})

const fiberResult = (fiber: Fiber.Fiber<void>): Effect.Effect<Exit.Exit<void> | null> =>
  Effect.sync(() => fiber.pollUnsafe() ?? null)
