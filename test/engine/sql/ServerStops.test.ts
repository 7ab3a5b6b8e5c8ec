import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { once } from "node:events"
import type { Server, Socket } from "node:net"
import { connect, createServer } from "node:net"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { afterCommit, Database, transaction } from "../../../src/engine/sql/Database.ts"
import type { Migration } from "../../../src/engine/sql/Migrations.ts"
import * as Migrations from "../../../src/engine/sql/Migrations.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { through } from "../../support/Forwarder.ts"
import { fieldsOf, openDriver, sql } from "../../support/Graph.ts"
import { sqlAt } from "../../support/OpenDatabase.ts"
import { freePort } from "../../support/Ports.ts"
import type { PostgresCluster } from "../../support/Postgres.ts"
import { startPostgres } from "../../support/Postgres.ts"

/* A PostgreSQL server that crashes during an operation, and a proxy that refuses in place of the server. */

const until = (url: string, statement: string) =>
  Effect.repeat(Effect.delay(Effect.promise(() => sqlAt(url, statement)), 20), {
    until: (rows) => rows.length > 0,
    times: 1000
  })

describe("a server that crashes", () => {
  let cluster: PostgresCluster
  let url = ""

  beforeAll(async () => {
    cluster = await startPostgres({ followed: true })
    url = await cluster.createDatabase()
    await sqlAt(url, "CREATE TABLE things (name text PRIMARY KEY)")
  })

  afterAll(() => cluster?.stop())

  it.live("makes a commit in progress fail", () =>
    Effect.gen(function*() {
      // The server commits, and then waits for a standby that does not exist before it would answer.
      yield* Effect.promise(() => sqlAt(url, "ALTER SYSTEM SET synchronous_standby_names = '*'"))
      yield* Effect.promise(() => sqlAt(url, "SELECT pg_reload_conf()"))
      yield* until(url, "SELECT 1 WHERE current_setting('synchronous_standby_names') = '*'")
      const driver = yield* openDriver(url, 2)
      let told = 0
      const insert = transaction(Effect.andThen(
        sql("INSERT INTO things VALUES ('one') ON CONFLICT DO NOTHING"),
        afterCommit(Effect.sync(() => told++))
      ))
      const committing = yield* Effect.forkChild(Effect.exit(Effect.provideService(insert, Database, driver)))
      yield* until(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
      yield* Effect.promise(() => cluster.halt())
      assert.isTrue(Exit.isFailure(yield* Fiber.join(committing)))
      assert.strictEqual(told, 0)

      yield* Effect.promise(() => cluster.resume())
      yield* Effect.promise(() => sqlAt(url, "ALTER SYSTEM RESET synchronous_standby_names"))
      yield* Effect.promise(() => sqlAt(url, "SELECT pg_reload_conf()"))
      yield* until(url, "SELECT 1 WHERE current_setting('synchronous_standby_names') = ''")
      // The commit has taken effect although its caller was told otherwise, so the same change must be possible again.
      assert.lengthOf(yield* Effect.promise(() => sqlAt(url, "SELECT 1 FROM things")), 1)
      yield* Effect.provideService(insert, Database, driver)
      assert.strictEqual(told, 1)
      assert.lengthOf(yield* Effect.promise(() => sqlAt(url, "SELECT 1 FROM things")), 1)
    }).pipe(Effect.scoped))

  it.live("leaves nothing of a migration that was in progress", () => {
    const records: Array<Record> = []
    const migration = (last: string): Migration => ({
      version: 1,
      name: "0001_long",
      checksum: "1".repeat(64),
      statements: ["CREATE TABLE whole (id INTEGER)", last]
    })
    return Effect.gen(function*() {
      const driver = yield* openDriver(url, 2)
      yield* Effect.gen(function*() {
        const migrating = yield* Effect.forkChild(Effect.flip(Migrations.migrate([migration("SELECT pg_sleep(600)")])))
        yield* until(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        yield* Effect.promise(() => cluster.halt())
        const { detail } = yield* Fiber.join(migrating)
        assert.match(detail, /the PostgreSQL server is down, starting or stopping/)
        assert.strictEqual(fieldsOf(records, "db_migration_failed")[0]?.["name"], "0001_long")
        yield* Effect.promise(() => cluster.resume())
        assert.lengthOf(yield* sql("SELECT 1 FROM pg_class WHERE relname = 'whole'"), 0)
        assert.deepStrictEqual(yield* Migrations.migrate([migration("SELECT 1")]), ["0001_long"])
      }).pipe(Effect.provideService(Database, driver), Effect.provide(layerMemory(records)))
    }).pipe(Effect.scoped)
  })
})

/** A message of PostgreSQL's protocol that refuses whatever the client has sent. */
const refusal = (code: string, message: string): Buffer => {
  const fields = [`SFATAL`, `VFATAL`, `C${code}`, `M${message}`].map((field) => `${field}\0`).join("")
  const body = Buffer.from(`${fields}\0`)
  const head = Buffer.alloc(5)
  head.write("E")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

describe("a proxy that answers 08P01", () => {
  let cluster: PostgresCluster
  let proxy: Server
  let address = 0
  let url = ""
  /** The refusal that is sent in place of the server's answers, and how often it was sent. */
  let answer: string | undefined
  let refused = 0
  let heard = () => {}

  beforeAll(async () => {
    cluster = await startPostgres()
    address = await freePort()
    const forward = (inner: Socket) => {
      const outer = connect({ port: cluster.port, host: "127.0.0.1" })
      inner.on("data", (sent) => {
        if (answer === undefined) return outer.write(sent)
        if (inner.writableEnded) return undefined // This is the message with which the client ends the connection.
        inner.end(refusal("08P01", answer))
        refused++
        return heard()
      })
      outer.on("data", (said) => inner.write(said))
      for (const [one, other] of [[inner, outer], [outer, inner]] as const) {
        one.on("error", () => other.destroy())
        one.on("close", () => other.destroy())
      }
    }
    proxy = createServer(forward).listen(address, "127.0.0.1")
    await once(proxy, "listening")
    url = through(await cluster.createDatabase(), { port: address })
  })

  afterAll(async () => {
    proxy?.close()
    await cluster?.stop()
  })

  it.live("makes a statement fail with this code, and its connection is replaced", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(url, 1)
      const one = { text: "SELECT 1 AS one", order: [], reads: true }
      assert.deepStrictEqual(yield* driver.single(one, []), [{ one: 1 }])
      answer = "query_wait_timeout"
      const failed = yield* Effect.flip(driver.single(one, []))
      assert.match(driver.describe(failed).detail, /^08P01 query_wait_timeout/)
      answer = undefined
      assert.deepStrictEqual(yield* driver.single(one, []), [{ one: 1 }])
    }).pipe(Effect.scoped))

  it.live("delays a new connection only if the condition may end by itself", () =>
    Effect.gen(function*() {
      answer = "no more connections allowed (max_client_conn)"
      refused = 0
      const tried = yield* Deferred.make<void>()
      heard = () => refused >= 3 ? Deferred.doneUnsafe(tried, Effect.void) : undefined
      const opening = yield* Effect.forkChild(Effect.scoped(openDriver(url, 1)))
      yield* Deferred.await(tried)
      assert.isUndefined(opening.pollUnsafe())
      answer = undefined
      yield* Fiber.join(opening)

      answer = "unsupported startup parameter: statement_timeout"
      refused = 0
      const failed = yield* Effect.exit(Effect.scoped(openDriver(url, 1)))
      assert.isTrue(Exit.isFailure(failed))
      assert.strictEqual(refused, 1)
      answer = undefined
    }))
})
