import { it } from "@effect/vitest"
import { Context, Deferred, Effect, Layer, Redacted } from "effect"
import { assert, describe } from "vitest"
import { Entropy } from "../../../src/crypto/Entropy.ts"
import { enqueueJob, handler, knownKinds } from "../../../src/domain/words/JobKind.ts"
import { Loops } from "../../../src/engine/Loops.ts"
import { Done } from "../../../src/engine/queue/Outcome.ts"
import { Queue } from "../../../src/engine/queue/Queue.ts"
import { start } from "../../../src/engine/queue/Runner.ts"
import { Database, transaction } from "../../../src/engine/sql/Database.ts"
import * as Migrations from "../../../src/engine/sql/Migrations.ts"
import * as Postgres from "../../../src/engine/sql/Postgres.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import * as nonces from "../../../src/store/NonceRows.ts"
import { freshPostgresUrl } from "../../support/Databases.ts"
import { column, migrationsOf, openDriver, sql } from "../../support/Graph.ts"

/*
 * With `database.pooling = "transaction"`, a session has no state that a proxy in this mode would lose or mix up. The
 * test checks this on the server itself.
 */

const pooled = (url: string, more: { readonly listen_url?: Redacted.Redacted } = {}) =>
  Effect.orDie(Effect.map(
    Layer.build(
      Postgres.layer({
        url: Redacted.make(url),
        pool_max: 1,
        acquire_timeout_ms: 5000,
        pooling: "transaction",
        ...more
      })
    ),
    Context.get(Database)
  ))

// The cluster also has databases of tests that run at the same time.
const advisoryLocks = `SELECT locktype FROM pg_locks
  WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
const settings = "SELECT setting FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout') ORDER BY name"
const transactionSettings = Effect.flatMap(
  Database,
  (driver) => driver.transact((connection) => Effect.exit(connection.execute(settings, [])))
)

describe("transaction pooling on PostgreSQL", () => {
  it.live("leaves no prepared statement, no setting and no lock in a session", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(freshPostgresUrl)
      const driver = yield* pooled(url)
      assert.deepStrictEqual([driver.keepsSession, driver.listen], [false, undefined])
      yield* Effect.provideService(
        Effect.gen(function*() {
          const migrations = yield* migrationsOf("postgres")
          assert.lengthOf(yield* Migrations.migrate(migrations), migrations.length)
          yield* transaction(nonces.insert(["a", "b"], 1))
          assert.lengthOf(yield* nonces.consume(["a"]), 1)
          assert.deepStrictEqual(yield* column("SELECT name FROM pg_prepared_statements"), [])
          assert.deepStrictEqual(yield* column(advisoryLocks), [])
          assert.deepStrictEqual(yield* column(settings), ["0", "0"])
          const exit = yield* transactionSettings
          assert.deepInclude(exit, { value: [{ setting: "10000" }, { setting: "30000" }] })
        }),
        Database,
        driver
      )
      const own = yield* openDriver(url, 1)
      yield* Effect.provideService(
        Effect.gen(function*() {
          yield* nonces.consume(["b"])
          assert.lengthOf(yield* sql("SELECT name FROM pg_prepared_statements"), 1, "and without it they are prepared")
          assert.deepStrictEqual(yield* column(settings), ["10000", "30000"])
        }),
        Database,
        own
      )
    }))

  it.live("applies each migration once, even if several processes start at the same time", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(freshPostgresUrl)
      const migrations = yield* migrationsOf("postgres")
      const applied = yield* Effect.forEach(
        [1, 2, 3],
        () =>
          Effect.flatMap(
            pooled(url),
            (driver) => Effect.provideService(Migrations.migrate(migrations), Database, driver)
          ),
        { concurrency: 3 }
      )
      assert.deepStrictEqual(
        applied.flat().sort(),
        migrations.map(({ name }) => name)
      )
    }))

  for (const listens of [false, true]) {
    it.live(`finds a job of another process by ${listens ? "listening at listen_url" : "polling"}`, () =>
      Effect.gen(function*() {
        const records: Array<Record> = []
        const url = yield* Effect.promise(freshPostgresUrl)
        const own = yield* openDriver(url)
        yield* Effect.provideService(Effect.flatMap(migrationsOf("postgres"), Migrations.migrate), Database, own)
        const more = listens ? { listen_url: Redacted.make(url) } : {}
        const driver = yield* pooled(url, more)
        const queueOn = (on: typeof driver) =>
          Effect.map(
            Layer.build(Layer.provide(
              Layer.fresh(Queue.layer({ kinds: knownKinds, config: () => ({ jobs: { max_attempts: 3 } }) })),
              Layer.merge(Layer.succeed(Database, on), Entropy.layer)
            )),
            Context.get(Queue)
          )
        const ran = yield* Deferred.make<void>()
        const regenerate = handler<"local_ca_crl_regenerate", Database>({
          kind: "local_ca_crl_regenerate",
          budgetMillis: () => 10_000,
          run: () => Effect.as(Deferred.succeed(ran, undefined), Done()),
          abandon: () => Effect.void
        })
        const options = {
          poll_interval_ms: listens ? 3_600_000 : 50,
          max_concurrent: 1,
          lease_seconds: 300,
          retry_base_seconds: 1,
          retry_max_seconds: 1,
          owner: "host:1:a"
        }
        yield* start(options, [regenerate]).pipe(
          Effect.provideService(Queue, yield* queueOn(driver)),
          Effect.provideService(Database, driver),
          Effect.provide(Layer.mergeAll(Entropy.layer, Loops.layer, layerMemory(records)))
        )
        const listeners = Effect.provideService(
          column("SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'"),
          Database,
          own
        )
        if (listens) yield* Effect.repeat(Effect.delay(listeners, 20), { until: (pids) => pids.length === 1 })
        else assert.deepStrictEqual([driver.listen, yield* listeners], [undefined, []])
        const elsewhere = yield* queueOn(yield* pooled(url, more))
        yield* Effect.provideService(
          enqueueJob({ kind: "local_ca_crl_regenerate", dedupKey: "x", payload: { issuer: "x" } }),
          Queue,
          elsewhere
        )
        yield* Deferred.await(ran)
      }))
  }
})
