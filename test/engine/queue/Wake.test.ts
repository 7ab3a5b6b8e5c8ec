import { it } from "@effect/vitest"
import { Clock, Context, Deferred, Effect, Fiber, Layer } from "effect"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { enqueueJob, handler, knownKinds } from "../../../src/domain/words/JobKind.ts"
import { Loops } from "../../../src/engine/Loops.ts"
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
import { postgres, useDatabase } from "../../support/Databases.ts"
import { eventsOf, sql } from "../../support/Graph.ts"

const done: Outcome<Database> = Done()

// The interval is longer than the test, so polling finds nothing.
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
      Layer.fresh(Queue.layer({ kinds: knownKinds, maxAttempts: () => 3 })),
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

describe("work another process enqueues on PostgreSQL", () => {
  const database = useDatabase(postgres)

  it.live("wakes the runner once it has committed, and again after the connection was lost", () =>
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

  it.live("tells whoever waits for it that it has ended, settled or cancelled", () =>
    database.use(Effect.gen(function*() {
      const other = yield* database.another
      const queue = yield* queueOf(other)
      const listeners = sql(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN ${jobs.doneChannel}'`
      )
      const server = { request_timeout_ms: 60_000, max_concurrent_requests: 100 }
      const here = yield* queueOf(database.driver())
      const waits = Context.get(
        yield* Layer.build(Layer.provide(Waits.layer(server), Layer.merge(Layer.succeed(Queue, here), Loops.layer))),
        Waits
      )
      yield* Effect.repeat(Effect.delay(listeners, 20), { until: (rows) => rows.length === 1 })
      for (const end of ["done", "cancelled"] as const) {
        const id = yield* Effect.provideService(
          enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: end, payload: { issuer: "i" } }),
          Queue,
          queue
        )
        // The sleep of this wait never ends, so it does not look again: only a notification can end it.
        const waiting = yield* Effect.forkChild(Effect.clockWith((clock) =>
          Effect.provideService(
            waits.settled(id),
            Clock.Clock,
            Object.assign(Object.create(clock) as Clock.Clock, { sleep: () => Effect.never })
          )
        ))
        yield* Effect.sleep("50 millis")
        const ended = Effect.gen(function*() {
          if (end === "cancelled") return yield* knownKinds.cancel(id, "ready", 1)
          const claimed = {
            now: 9_999_999_999,
            owner: "o",
            until: 1,
            limit: 1,
            kinds: ["local_ca_crl_regenerate"] as const
          }
          yield* knownKinds.claim(claimed)
          return yield* knownKinds.settle({ id, owner: "o", attempts: 1 }, "done", undefined, 1)
        })
        assert.isDefined(yield* Effect.provideService(ended, Database, other))
        assert.strictEqual((yield* Effect.timeout(Fiber.join(waiting), "30 seconds"))?.status, end)
      }
    })))
})
