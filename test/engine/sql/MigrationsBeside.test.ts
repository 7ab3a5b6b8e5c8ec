import { it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Scope } from "effect"
import { Client } from "pg"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Migration } from "../../../src/engine/sql/Migrations.ts"
import * as Migrations from "../../../src/engine/sql/Migrations.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { commandLine } from "../../support/CommandLine.ts"
import { builtServer, freshPostgresUrl } from "../../support/Databases.ts"
import { count, eventsOf, fieldsOf, migrationsOf, openDriver } from "../../support/Graph.ts"
import { minimalConfig } from "../../support/Server.ts"

/*
 * Migrations of PostgreSQL during a session that reads every table for a long time, as a backup does. A statement that
 * waits for a lock on such a table delays every later statement on that table.
 */

/** A session of another program. */
const sessionOf = (url: string, application: string): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client({ connectionString: url, application_name: application })
      await client.connect()
      return client
    }),
    (client) => Effect.promise(() => client.end())
  )

const tablesOf = (session: Client) =>
  Effect.map(
    Effect.promise(() => session.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'")),
    ({ rows }: { readonly rows: ReadonlyArray<{ readonly name: string }> }) => rows.map(({ name }) => name)
  )

const query = (session: Client, text: string) => Effect.promise(() => session.query(text))

/** Locks every table until `COMMIT`, as `pg_dump` does. */
const readAll = (session: Client) =>
  Effect.flatMap(
    tablesOf(session),
    (tables) => query(session, `BEGIN; ${tables.map((table) => `LOCK TABLE ${table} IN ACCESS SHARE MODE`).join("; ")}`)
  )

/** Completes when a session waits for a lock, or when no session does. */
const untilWaits = (session: Client, isWaiting: boolean) =>
  Effect.repeat(
    query(
      session,
      "SELECT 1 FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    ),
    { until: ({ rows }) => rows.length > 0 === isWaiting }
  )

const open = Effect.gen(function*() {
  const url = yield* Effect.promise(freshPostgresUrl)
  return {
    url,
    driver: yield* openDriver(url),
    reader: yield* sessionOf(url, "pg_dump of the night"),
    beside: yield* sessionOf(url, "load")
  }
})

const brief = { lockMillis: 100, pauseMillis: 10 }

const addsColumn: Migration = {
  version: 900,
  name: "0900_column",
  checksum: "1".repeat(64),
  statements: ["CREATE TABLE whole (id INTEGER)", "ALTER TABLE nonces ADD COLUMN more BIGINT"]
}

describe("migrating PostgreSQL during a long read", () => {
  it.live("lets every other statement through while any migration waits", () =>
    Effect.scoped(Effect.gen(function*() {
      const { beside, driver, reader } = yield* open
      const migrations = yield* migrationsOf("postgres")
      // A delayed statement then fails instead of waiting for ever.
      yield* query(beside, "SET lock_timeout = '10s'")
      const waited: Array<string> = []
      for (const [index, { name }] of migrations.entries()) {
        yield* readAll(reader)
        const migrating = yield* Effect.forkChild(
          Effect.provideService(Migrations.migrate(migrations.slice(0, index + 1), brief), Database, driver)
        )
        yield* Effect.raceFirst(untilWaits(beside, true), Fiber.await(migrating))
        if (migrating.pollUnsafe() === undefined) {
          waited.push(name)
          for (const table of yield* tablesOf(beside)) {
            yield* query(beside, `SELECT 1 FROM ${table} LIMIT 1`)
            yield* query(beside, `DELETE FROM ${table} WHERE false`)
          }
          assert.isUndefined(migrating.pollUnsafe(), `${name} waits for the reader still`)
        }
        yield* query(reader, "COMMIT")
        assert.deepStrictEqual(yield* Fiber.join(migrating), [name])
      }
      assert.includeMembers(waited, ["0016_upstream_asks", "0038_nonce_moments"])
    })))

  it.live("finally gives up with the name of the session that it waits for", () => {
    const records: Array<Record> = []
    return Effect.scoped(Effect.gen(function*() {
      const { driver, reader } = yield* open
      const said: Array<string> = []
      const waiting = (sentence: string) => Effect.sync(() => void said.push(sentence))
      yield* Effect.gen(function*() {
        yield* Migrations.migrate(yield* migrationsOf("postgres"))
        const { rows: [{ pid }] } = yield* query(reader, "SELECT pg_backend_pid() AS pid")
        yield* readAll(reader)
        const failed = yield* Effect.flip(Migrations.migrate([addsColumn], { ...brief, waiting, patienceMillis: 500 }))
        assert.deepInclude(failed, { _tag: "SchemaUnusable", reason: "locked", migration: "0900_column" })
        const holder = new RegExp(
          `the session with pid ${
            String(pid)
          } \\(pg_dump of the night, its statement since \\d{4}-\\d\\d-\\d\\dT[\\d:]+Z\\)`
        )
        assert.match(failed.detail, holder)
        assert.match(
          failed.detail,
          /^Migration 0900_column was not applied, and nothing of it was changed: for \d+ s, the /
        )
        assert.isNotEmpty(said)
        for (const sentence of said) assert.match(sentence, holder)
        assert.include(eventsOf(records), "db_migration_failed")
        const told = fieldsOf(records, "db_migration_waiting")
        assert.strictEqual(told.length, said.length)
        assert.match(String(told[0]?.["holder"]), holder)
        assert.strictEqual(yield* count("SELECT count(*) FROM schema_migrations WHERE version = 900"), 0)
        assert.strictEqual(yield* count("SELECT count(*) FROM pg_class WHERE relname = 'whole'"), 0)
        yield* query(reader, "COMMIT")
        assert.deepStrictEqual(yield* Migrations.migrate([addsColumn], brief), ["0900_column"])
      }).pipe(Effect.provideService(Database, driver), Effect.provide(layerMemory(records)))
    }))
  })

  it.live("waits for another process that migrates, however long that takes, and says so", () => {
    const records: Array<Record> = []
    return Effect.scoped(Effect.gen(function*() {
      const { beside, driver, reader } = yield* open
      const { rows: [{ pid }] } = yield* query(reader, "SELECT pg_backend_pid() AS pid")
      yield* query(reader, "SELECT pg_advisory_lock(4738219001)")
      const migrating = yield* Effect.forkChild(
        Effect.provideService(Migrations.migrate([addsColumn], { ...brief, lockMillis: 1 }), Database, driver)
      )
      yield* untilWaits(beside, true)
      // This takes longer than a statement waits for a lock.
      for (let other = 0; other < 100; other++) yield* query(beside, "SELECT 1")
      yield* query(beside, "CREATE TABLE nonces (value TEXT)")
      assert.isUndefined(migrating.pollUnsafe())
      const told = Effect.delay(Effect.sync(() => fieldsOf(records, "db_migration_waiting")), 20)
      const [first] = yield* Effect.repeat(told, { until: ({ length }) => length > 0 })
      assert.match(
        String(first?.["holder"]),
        new RegExp(`^the session with pid ${String(pid)} .*, which migrates too$`)
      )
      yield* query(reader, "SELECT pg_advisory_unlock_all()")
      assert.deepStrictEqual(yield* Fiber.join(migrating), ["0900_column"])
    })).pipe(Effect.provide(layerMemory(records)))
  })

  it.live("says on standard error what the command waits for", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* Effect.promise(builtServer)
      const { beside, driver, reader, url } = yield* open
      const migrations = yield* migrationsOf("postgres")
      // Not every migration waits for a reader. This one changes the columns of a table.
      const waits = migrations.findIndex(({ name }) => name === "0038_nonce_moments")
      yield* Effect.provideService(Migrations.migrate(migrations.slice(0, waits)), Database, driver)
      yield* readAll(reader)
      const ended = yield* Effect.forkChild(
        Effect.promise(() => commandLine(["migrate"], { config: minimalConfig, env: { ACME_SVC_DATABASE__URL: url } }))
      )
      // A failed attempt to lock the tables is reported before the next attempt begins. So if the second attempt waits,
      // the first one has been reported.
      for (const isWaiting of [true, false, true]) yield* untilWaits(beside, isWaiting)
      yield* query(reader, "COMMIT")
      const { code, stderr, stdout } = yield* Fiber.join(ended)
      assert.deepStrictEqual([code, stdout.trim()], [0, `${String(migrations.length - waits)} migration(s) applied.`])
      assert.match(
        stderr,
        /Migration \S+ waits for the session with pid \d+ \(pg_dump of the night, its statement since /
      )
    })))
})
