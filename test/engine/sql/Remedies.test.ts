import { it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import * as jobRecords from "../../../src/engine/queue/JobRecords.ts"
import { Database, StorageFailed } from "../../../src/engine/sql/Database.ts"
import { appliedNames } from "../../../src/engine/sql/Migrations.ts"
import * as Migrations from "../../../src/engine/sql/Migrations.ts"
import { causeOf, withRemedy } from "../../../src/engine/sql/Remedies.ts"
import { notKept } from "../../../src/engine/sql/SessionKept.ts"
import * as Sqlite from "../../../src/engine/sql/Sqlite.ts"
import { databases, freshDirectory, freshPostgresUrl } from "../../support/Databases.ts"
import { migrationsOf, openDriver, sql } from "../../support/Graph.ts"

describe("the advice about a failure of the database", () => {
  describe.each(databases)("on $name", ({ dialect, freshUrl }) => {
    it.effect("covers a missing schema and missing tables", () =>
      Effect.gen(function*() {
        const driver = yield* openDriver(yield* Effect.promise(freshUrl))
        yield* Effect.gen(function*() {
          assert.deepStrictEqual(yield* appliedNames, [])
          const absent = yield* Effect.flip(jobRecords.oldest(1))
          assert.instanceOf(absent, StorageFailed)
          assert.match(absent.message, /the schema is not this build's: run acme-svc migrate/)
          yield* sql("CREATE TABLE jobs (id INTEGER)")
          const failed = yield* Effect.flip(Effect.flatMap(migrationsOf(dialect), Migrations.migrate))
          assert.match(
            "detail" in failed ? failed.detail : "",
            /Migration 0003_queue: .*belongs to another program, or was restored in part/
          )
        }).pipe(Effect.provideService(Database, driver))
      }))
  })

  it.effect("covers a database whose encoding lacks a character", () =>
    Effect.scoped(Effect.gen(function*() {
      const url = new URL(yield* Effect.promise(freshPostgresUrl))
      const name = `${url.pathname.slice(1)}_latin`
      const utf8 = yield* openDriver(url.href, 1)
      const made = `CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`
      yield* Effect.provideService(sql(made), Database, utf8)
      url.pathname = name
      yield* Effect.gen(function*() {
        const driver = yield* openDriver(url.href, 1)
        const failed = yield* Effect.flip(driver.single({ text: "SELECT $1::text", order: [], reads: true }, ["ж"]))
        assert.match(driver.describe(failed).detail, /^22P05 .*; the encoding of the database lacks this character: /)
      }).pipe(Effect.scoped)
      yield* Effect.provideService(sql(`DROP DATABASE ${name}`), Database, utf8)
    })))

  it.effect("covers a damaged file", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "damaged.db")
      writeFileSync(path, Buffer.alloc(8192, "no database"))
      const layer = Sqlite.layer({ path, synchronous: "normal" })
      const failed = yield* Effect.flip(Effect.provide(Database, layer))
      const { cause } = failed
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
      assert.match(withRemedy(code, cause instanceof Error ? cause.message : ""), /put a backup in its place/)
    }))

  it("covers a proxy that accepts no settings, and a server that is unavailable", () => {
    assert.match(withRemedy("08P01", "unsupported startup parameter: statement_timeout"), /set database\.pooling/)
    assert.match(withRemedy("42P05", "prepared statement \"S_1\" already exists"), /set database\.pooling/)
    assert.match(withRemedy("", notKept), /set database\.pooling/)
    assert.match(withRemedy("57P03", "the database system is starting up"), /continues when the server is back/)
    assert.match(withRemedy("25006", "cannot execute INSERT in a read-only transaction"), /takes no writes/)
    assert.strictEqual(causeOf("25006", "cannot execute INSERT in a read-only transaction"), "refused")
    assert.strictEqual(causeOf("53100", "could not extend file"), "full")
    assert.strictEqual(causeOf("SQLITE_FULL", "database or disk is full"), "full")
    assert.strictEqual(causeOf("ECONNREFUSED", "connect ECONNREFUSED"), "away")
    assert.strictEqual(causeOf("", "Connection terminated unexpectedly"), "away")
    assert.strictEqual(causeOf("", "Client has encountered a connection error and is not queryable"), "away")
    assert.strictEqual(causeOf("EHOSTUNREACH", "connect EHOSTUNREACH 192.0.2.1:5432"), "away")
    assert.strictEqual(causeOf("23505", "duplicate key"), "other")
    assert.strictEqual(withRemedy("23505", "duplicate key"), "23505 duplicate key")
  })
})
