import { it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Redacted } from "effect"
import type { Scope } from "effect"
import { Client } from "pg"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Executor } from "../../../src/engine/sql/Driver.ts"
import * as Migrations from "../../../src/engine/sql/Migrations.ts"
import * as Postgres from "../../../src/engine/sql/Postgres.ts"
import type { PostgresOptions } from "../../../src/engine/sql/PostgresServer.ts"
import { freshPostgresUrl } from "../../support/Databases.ts"
import { sqlAt } from "../../support/OpenDatabase.ts"
import { patienceMs } from "../../support/Patience.ts"

/* The time limits that an administrator sets with ALTER DATABASE, and the time limits of the configuration. */

const names = ["idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout"]

const databaseWith = (limits: Readonly<Record<string, string>>): Effect.Effect<string> =>
  Effect.promise(async () => {
    const url = await freshPostgresUrl()
    const database = new URL(url).pathname.slice(1)
    for (const [name, value] of Object.entries(limits)) {
      await sqlAt(url, `ALTER DATABASE ${database} SET ${name} = '${value}'`)
    }
    return url
  })

const open = (url: string, options: Partial<PostgresOptions> = {}) =>
  Effect.orDie(Effect.map(
    Layer.build(Postgres.layer({
      url: Redacted.make(url),
      pool_max: 2,
      acquire_timeout_ms: patienceMs,
      ...options
    })),
    Context.get(Database)
  ))

const inForce = (connection: Executor) =>
  Effect.map(
    connection.execute(`SELECT ${names.map((name) => `current_setting('${name}') AS ${name}`).join(", ")}`, []),
    ([row]) => names.map((name) => row?.[name])
  )

describe("the time limits of PostgreSQL", () => {
  const cases = [
    ["those of the administrator where they are lower", { lock_timeout: "2s", statement_timeout: "1h" }, {}, [
      "30s",
      "2s",
      "30s"
    ]],
    ["the configured ones where the administrator has none", {}, {
      statement_timeout_ms: 4000,
      lock_timeout_ms: 3000,
      idle_in_transaction_timeout_ms: 2000
    }, ["2s", "3s", "4s"]],
    ["the lower ones of both", { idle_in_transaction_session_timeout: "1s", lock_timeout: "9s" }, {
      lock_timeout_ms: 3000
    }, ["1s", "3s", "30s"]]
  ] as const

  it.live.each(cases)(
    "are %s, both in sessions and behind a proxy that pools transactions",
    ([, theirs, ours, expected]) =>
      Effect.gen(function*() {
        const url = yield* databaseWith(theirs)
        for (const pooling of ["session", "transaction"] as const) {
          const driver = yield* open(url, { ...ours, pooling })
          const found = yield* driver.transact((connection) => Effect.exit(inForce(connection)))
          assert.deepStrictEqual(yield* found, [...expected], pooling)
        }
      })
  )

  it.live("apply to reads aside too", () =>
    Effect.gen(function*() {
      const driver = yield* open(yield* databaseWith({ statement_timeout: "3s" }))
      const aside = driver.aside ?? assert.fail("nothing runs beside")
      const found = yield* aside(25_000, (connection) => Effect.exit(inForce(connection)))
      assert.deepStrictEqual(yield* found, ["30s", "10s", "3s"])
    }))

  /** Runs a test on a database whose transactions the server ends, if it has such a limit: PostgreSQL 17 and newer. */
  const whereTransactionsEnd = (test: (url: string) => Effect.Effect<void, never, Scope.Scope>) =>
    Effect.gen(function*() {
      const known = yield* Effect.promise(() =>
        freshPostgresUrl().then((url) => sqlAt(url, "SELECT 1 FROM pg_settings WHERE name = 'transaction_timeout'"))
      )
      if (known.length > 0) yield* test(yield* databaseWith({ transaction_timeout: "200ms" }))
    })

  it.live("cost only the statement that exceeded a limit for transactions, and not the next one", () =>
    whereTransactionsEnd((url) =>
      Effect.gen(function*() {
        const driver = yield* open(url, { pool_max: 1 })
        const ask = (text: string) => Effect.exit(driver.single({ text, order: [], reads: true }, []))
        const [long, next] = yield* Effect.all([ask("SELECT pg_sleep(600)"), ask("SELECT 1 AS one")], {
          concurrency: "unbounded"
        })
        assert.isTrue(Exit.isFailure(long))
        assert.deepStrictEqual(next, Exit.succeed([{ one: 1 }]))
      })
    ))

  it.live("do not end a migration that takes longer than a transaction may", () =>
    whereTransactionsEnd((url) =>
      Effect.gen(function*() {
        const driver = yield* open(url)
        const long = {
          version: 1,
          name: "0001_long",
          checksum: "1".repeat(64),
          statements: ["CREATE TABLE whole (id INTEGER)", "SELECT pg_sleep(0.4)"]
        }
        const names = yield* Effect.orDie(Effect.provideService(Migrations.migrate([long]), Database, driver))
        assert.deepStrictEqual(names, ["0001_long"])
      })
    ))

  it.live("do not end the listening connection, even if they are for idle sessions", () =>
    Effect.gen(function*() {
      const known = yield* Effect.promise(() =>
        freshPostgresUrl().then((url) => sqlAt(url, "SELECT 1 FROM pg_settings WHERE name = 'idle_session_timeout'"))
      )
      // Servers before PostgreSQL 14 do not end idle sessions.
      if (known.length === 0) return
      const url = yield* databaseWith({ idle_session_timeout: "1s" })
      const driver = yield* open(url)
      const listen = driver.listen ?? assert.fail("nobody listens")
      const [listening, heard] = [yield* Deferred.make<void>(), yield* Deferred.make<string>()]
      const ear = {
        heard: (payload: string) => void Deferred.doneUnsafe(heard, Effect.succeed(payload)),
        listening: Effect.asVoid(Deferred.succeed(listening, undefined))
      }
      const ended = yield* Effect.forkChild(listen("things", ear))
      yield* Deferred.await(listening)
      // A later session serves as the clock, because the server ends it when it has been idle for the same time.
      yield* Effect.promise(async () => {
        const clock = new Client({ connectionString: url })
        const over = new Promise((resolve) => clock.on("error", resolve))
        await clock.connect()
        assert.deepInclude(await over, { code: "57P05" })
      })
      assert.isUndefined(ended.pollUnsafe())
      yield* driver.single({ text: "NOTIFY things, 'told'", order: [], reads: false }, [])
      assert.strictEqual(yield* Deferred.await(heard), "told")
      yield* Fiber.interrupt(ended)
    }))
})

describe("the level of isolation that an administrator sets", () => {
  it.live("does not count, because the locks of the service need READ COMMITTED", () =>
    Effect.gen(function*() {
      const url = yield* databaseWith({ default_transaction_isolation: "serializable" })
      const level = "SELECT current_setting('transaction_isolation') AS level"
      const sessions = yield* open(url)
      const alone = yield* sessions.single({ text: level, order: [], reads: true }, [])
      assert.deepStrictEqual(alone, [{ level: "read committed" }])
      for (const pooling of ["session", "transaction"] as const) {
        const driver = yield* open(url, { pooling })
        const found = yield* driver.transact((connection) => Effect.exit(connection.execute(level, [])))
        assert.deepStrictEqual(yield* found, [{ level: "read committed" }], pooling)
      }
    }))
})
