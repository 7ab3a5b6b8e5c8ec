import { it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { enqueueJob, handler, knownKinds } from "../../../src/domain/words/JobKind.ts"
import { Loops } from "../../../src/engine/Loops.ts"
import { makeEnds } from "../../../src/engine/queue/Ends.ts"
import * as jobs from "../../../src/engine/queue/Job.ts"
import type { Outcome } from "../../../src/engine/queue/Outcome.ts"
import { Done } from "../../../src/engine/queue/Outcome.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import { start } from "../../../src/engine/queue/Runner.ts"
import { Waits } from "../../../src/engine/queue/Waits.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { databases, postgres, useDatabase } from "../../support/Databases.ts"
import { eventsOf, idLiteral, sql } from "../../support/Graph.ts"

const done: Outcome<Database> = Done()

// The polling interval is longer than the test, so polling finds nothing.
const options = {
  poll_interval_ms: 3_600_000,
  max_concurrent: 8,
  lease_seconds: 300,
  retry_base_seconds: 1,
  retry_max_seconds: 1,
  owner: "host:1:a"
}

const queueOf = (driver: Driver) =>
  Effect.map(
    Layer.build(Layer.provide(
      Layer.fresh(Queue.layer({ kinds: knownKinds, config: () => ({ jobs: { max_attempts: 3 } }) })),
      Layer.merge(Layer.succeed(Database, driver), Entropy.layer)
    )),
    Context.get(Queue)
  )

const validation = (run: Effect.Effect<unknown>) =>
  handler<"challenge_validate", Database>({
    kind: "challenge_validate",
    budgetMillis: () => 10_000,
    run: () => Effect.as(run, done),
    abandon: () => Effect.void
  })

const enqueueAt = (queue: Queue["Service"], key: string) =>
  Effect.provideService(
    enqueueJob({
      kind: "challenge_validate",
      dedupKey: key,
      payload: { challenge_id: key, profile: "p", thumbprint: "t" }
    }),
    Queue,
    queue
  )

describe("a job that another process enqueues on PostgreSQL", () => {
  const database = useDatabase(postgres)

  it.live("wakes the runner after the commit, even if the connection was lost and restored before", () =>
    database.use(Effect.gen(function*() {
      const [mine, other] = [database.driver(), yield* database.another]
      const queue = yield* queueOf(mine)
      const elsewhere = yield* queueOf(other)
      assert.notStrictEqual(queue.origin, elsewhere.origin)
      let ran = yield* Deferred.make<void>()
      const records: Array<Record> = []
      const handlers = [validation(Effect.suspend(() => Deferred.succeed(ran, undefined)))]
      const listeners = () =>
        sql(
          `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN ${jobs.wakeChannel}'`
        )
      const listening = Effect.repeat(Effect.delay(listeners(), 20), { until: (rows) => rows.length === 1 })
      yield* Effect.gen(function*() {
        const { stop } = yield* start(options, handlers)
        yield* listening
        yield* enqueueAt(elsewhere, "one")
        yield* Deferred.await(ran)

        ran = yield* Deferred.make<void>()
        yield* sql(`SELECT pg_terminate_backend(${String((yield* listeners())[0]?.["pid"])})`)
        yield* Effect.repeat(Effect.delay(listeners(), 20), { until: (rows) => rows.length === 0 })
        yield* listening
        yield* enqueueAt(elsewhere, "two")
        yield* Deferred.await(ran)
        yield* stop
        assert.deepStrictEqual(eventsOf(records).filter((event) => event.startsWith("db_listen")), [
          "db_listen_lost",
          "db_listen_restored"
        ])
      }).pipe(Effect.provide(Layer.mergeAll(
        Layer.succeed(Queue, queue),
        Entropy.layer,
        Loops.layer,
        layerMemory(records)
      )))
    })))

  it.live("is announced once together with all jobs that are committed meanwhile", () =>
    database.use(Effect.gen(function*() {
      const elsewhere = yield* queueOf(yield* database.another)
      const heard: Array<string> = []
      const isListening = yield* Deferred.make<void>()
      const { listen } = database.driver()
      if (listen === undefined) return assert.fail()
      yield* Effect.forkScoped(listen(jobs.wakeChannel, {
        heard: (text) => void heard.push(text),
        listening: Deferred.succeed(isListening, undefined)
      }))
      yield* Deferred.await(isListening)
      const keys = Array.from({ length: 40 }, (_, index) => `key ${index}`)
      yield* Effect.forEach(keys, (key) => enqueueAt(elsewhere, key), { concurrency: "unbounded" })
      yield* enqueueAt(elsewhere, "the last")
      yield* Effect.repeat(Effect.delay(Effect.void, 10), { until: () => heard.length > 0 })
      yield* sql(`SELECT pg_notify('${jobs.wakeChannel}', 'end')`)
      yield* Effect.repeat(Effect.delay(Effect.void, 10), { until: () => heard.includes("end") })
      assert.isBelow(heard.length, keys.length / 2, "the commits were announced one by one")
      assert.deepStrictEqual([...new Set(heard)], [`challenge_validate ${elsewhere.origin}`, "end"])
    })))

  it.live("is announced before the queue closes, even if an earlier announcement could not be sent", () =>
    database.use(Effect.gen(function*() {
      const own = yield* database.another
      const heard: Array<string> = []
      const isListening = yield* Deferred.make<void>()
      const { listen } = database.driver()
      if (listen === undefined) return assert.fail()
      yield* Effect.forkScoped(listen(jobs.wakeChannel, {
        heard: (text) => void heard.push(text),
        listening: Deferred.succeed(isListening, undefined)
      }))
      yield* Deferred.await(isListening)
      const broken = yield* Deferred.make<void>()
      let announcements = 0
      const driver: Driver = {
        ...own,
        single: (statement, params) =>
          statement.text.includes("pg_notify") && ++announcements === 1
            ? Effect.andThen(Deferred.succeed(broken, undefined), Effect.die("not sent"))
            : own.single(statement, params)
      }
      const { origin } = yield* Effect.scoped(Effect.gen(function*() {
        const queue = yield* queueOf(driver)
        yield* enqueueAt(queue, "one")
        yield* Deferred.await(broken)
        yield* enqueueAt(queue, "two")
        return queue
      }))
      yield* sql(`SELECT pg_notify('${jobs.wakeChannel}', 'end')`)
      yield* Effect.repeat(Effect.delay(Effect.void, 10), { until: () => heard.includes("end") })
      assert.deepStrictEqual(heard, [`challenge_validate ${origin}`, "end"])
    })))
})

describe.each(databases)("a job of another process on $name", (backend) => {
  const database = useDatabase(backend)

  it.live("ends the wait for the job soon after it was settled or cancelled", () =>
    database.use(Effect.gen(function*() {
      const other = yield* database.another
      const queue = yield* queueOf(other)
      const server = { request_timeout_ms: 60_000, max_concurrent_requests: 100 }
      const here = yield* queueOf(database.driver())
      const waits = Context.get(
        yield* Layer.build(Layer.provide(Waits.layer(server), Layer.merge(Layer.succeed(Queue, here), Loops.layer))),
        Waits
      )
      for (const end of ["done", "cancelled"] as const) {
        const id = yield* Effect.provideService(
          enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: end, payload: { issuer: "i" } }),
          Queue,
          queue
        )
        const subject = { kind: "local_ca_crl_regenerate", dedupKey: end }
        // These waits never wake from their sleep, so they end only because the process looks for ends.
        const withoutSleep = <A, E>(wait: Effect.Effect<A, E>) =>
          Effect.forkChild(Effect.clockWith((clock) =>
            Effect.provideService(
              wait,
              Clock.Clock,
              Object.assign(Object.create(clock) as Clock.Clock, { sleep: () => Effect.never })
            )
          ))
        const settled = yield* withoutSleep(waits.settled(id))
        const held = yield* withoutSleep(waits.held(waits.moment(), subject))
        const ended = Effect.gen(function*() {
          if (end === "cancelled") return yield* jobs.cancel(id, "ready", 1)
          const claimed = {
            now: 9_999_999_999,
            owner: "o",
            until: 1,
            limit: 1,
            kinds: ["local_ca_crl_regenerate"] as const
          }
          yield* knownKinds.claim(claimed)
          return yield* jobs.settle({ id, owner: "o", attempts: 1 }, "done", undefined, 1)
        })
        assert.isDefined(yield* Effect.provideService(ended, Database, other))
        assert.strictEqual((yield* Effect.timeout(Fiber.join(settled), "30 seconds"))?.status, end)
        assert.isTrue(yield* Effect.timeout(Fiber.join(held), "30 seconds"))
      }
    })))

  it.effect("holds a request no longer than the request is willing to wait", () =>
    database.use(Effect.scoped(Effect.gen(function*() {
      const server = { request_timeout_ms: 60_000, max_concurrent_requests: 100 }
      const queue = yield* queueOf(database.driver())
      const waits = Context.get(
        yield* Layer.build(Layer.provide(Waits.layer(server), Layer.merge(Layer.succeed(Queue, queue), Loops.layer))),
        Waits
      )
      const subject = { kind: "signer_issue", dedupKey: "one" }
      // This process runs the job, so it does not look for the end of the job.
      queue.ends.begun({ ...subject, share: "" })
      for (
        const [patience, millis] of [
          [undefined, 1000],
          [{ limitMillis: 5000, spentMillis: 0 }, 5000],
          [{ limitMillis: 59_999, spentMillis: 0 }, 59_000],
          [{ limitMillis: 59_999, spentMillis: 7000 }, 52_000],
          [{ limitMillis: 5000, spentMillis: 60_000 }, 0]
        ] as const
      ) {
        const held = yield* Effect.forkChild(waits.held(waits.moment(), subject, patience))
        yield* Effect.yieldNow
        yield* TestClock.adjust(Math.max(0, millis - 1))
        if (millis > 0) assert.isUndefined(held.pollUnsafe())
        yield* TestClock.adjust(1)
        assert.isDefined(held.pollUnsafe(), `${millis}`)
        assert.isTrue(yield* Fiber.join(held))
      }
    }))))

  it.effect("is looked for after growing pauses, but not while this process runs it", () =>
    database.use(Effect.gen(function*() {
      const ends = makeEnds()
      const subject = { kind: "signer_issue", dedupKey: "one" }
      const looked = { count: 0 }
      const driver: Driver = {
        ...database.driver(),
        single: (statement, params) => {
          looked.count++
          return database.driver().single(statement, params)
        }
      }
      const look = Effect.provideService(ends.look, Database, driver)
      yield* sql(
        `INSERT INTO jobs (id, kind, dedup_key, payload, status, run_at, attempts, max_attempts, created_at, updated_at, share)
         VALUES (${
          idLiteral(backend.dialect, "00000000-0000-4000-8000-000000000001")
        }, 'signer_issue', 'one', '{}', 'running', 0, 1, 3, 0, 0, '')`
      )
      const waiting = yield* Effect.forkChild(ends.after(ends.moment(), subject))
      yield* Effect.yieldNow
      const lookedAt: Array<number> = []
      ends.begun({ ...subject, share: "" })
      for (let millis = 0; millis < 2000; millis += 10) {
        if (millis === 200) ends.left(subject)
        const before = looked.count
        yield* look
        if (looked.count > before) lookedAt.push(millis)
        yield* TestClock.adjust(10)
      }
      assert.deepStrictEqual(lookedAt, [200, 240, 320, 480, 800, 1300, 1800])
      yield* sql("UPDATE jobs SET status = 'done'")
      yield* TestClock.adjust(500)
      yield* look
      yield* Fiber.join(waiting)
    })))

  it.effect("is looked for again without a pause if a reload interrupts the look", () =>
    database.use(Effect.gen(function*() {
      const ends = makeEnds()
      const driver: Driver = { ...database.driver(), single: () => Effect.never }
      const subject = { kind: "signer_issue", dedupKey: "one" }
      const waiting = yield* Effect.forkChild(ends.after(ends.moment(), subject))
      yield* Effect.yieldNow
      yield* TestClock.adjust(20)
      const look = yield* Effect.forkChild(Effect.provideService(ends.look, Database, driver))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(look)
      // No job is stored, so the work has ended.
      yield* ends.look
      assert.isDefined(waiting.pollUnsafe())
    })))
})
