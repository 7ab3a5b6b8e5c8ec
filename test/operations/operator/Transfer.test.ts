import { it } from "@effect/vitest"
import Sqlite from "better-sqlite3"
import { Effect, Exit, Layer, Random, Redacted, Result, Scope } from "effect"
import { TestClock } from "effect/testing"
import { createHash } from "node:crypto"
import { assert, describe } from "vitest"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { Database } from "../../../src/engine/sql/Database.ts"
import * as Postgres from "../../../src/engine/sql/Postgres.ts"
import { refuseCopied } from "../../../src/engine/sql/ServedLock.ts"
import { verify } from "../../../src/operations/operator/ChainVerification.ts"
import * as transfer from "../../../src/operations/operator/Transfer.ts"
import { chainRows } from "../../../src/operations/work/AuditChaining.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import type { Counted } from "../../../src/store/transfer/RowTransfer.ts"
import * as Transfer from "../../../src/store/transfer/RowTransfer.ts"
import { tables } from "../../../src/store/transfer/Tables.ts"
import { bothDatabases, postgres, sqlite, useDatabase } from "../../support/Databases.ts"
import { breakWrites, killedAfter, mend } from "../../support/Faults.ts"
import { isFull } from "../../support/Full.ts"
import { count, migrationsOf, sql } from "../../support/Graph.ts"
import { dump, orders, populate, populatedRows } from "../../support/Populated.ts"
import { withServerClock } from "../../support/ServerClock.ts"
import { useStore } from "../../support/UseTests.ts"

const olga = { kind: "cli", id: "olga" } as const
const now = 1_800_000_000 // long after the processes of the rows were last seen
const quietly = () => Effect.void

const known = Effect.map(migrationsOf("sqlite"), (migrations) => migrations.map(({ name }) => name))
const pairs = bothDatabases.flatMap((source) =>
  bothDatabases.map((target) => ({ name: `${source.name} to ${target.name}`, source, target }))
).filter(({ source, target }) => isFull || source !== target)

/** A source of random numbers that always returns the upper end of a range. */
const largest = { nextIntUnsafe: () => Number.MAX_SAFE_INTEGER, nextDoubleUnsafe: () => 1 - 2 ** -53 }

const everyTable = tables.map(({ name }) => name)
const rowsOf = Effect.forEach(everyTable, (name) => count(`SELECT count(*) FROM ${name}`))
const isEmpty = Effect.map(rowsOf, (counts) => counts.every((rows) => rows === 0))

describe.each(pairs)("a transfer from $name", ({ source, target }) => {
  const { database: from, test } = useStore(source, { startsAt: now })
  const to = useDatabase(target)
  const run = (progress: (so: Counted) => Effect.Effect<void> = quietly) =>
    Effect.flatMap(known, (names) => transfer.run(olga, to.driver(), names, progress))
  const refused = Effect.flip(run())

  test("copies every row of every table, and reports their number and their digest", () =>
    Effect.gen(function*() {
      yield* populate
      const plan = yield* Effect.flatMap(known, (names) => transfer.plan(to.driver(), names))
      const { tables: copied, total } = yield* run()
      assert.strictEqual(total, populatedRows)
      assert.deepStrictEqual(copied.map(({ table }) => table), everyTable)
      assert.deepStrictEqual(
        copied.map(({ rows, table }) => ({ rows, table })),
        plan.map(({ rows, table }) => ({ rows, table }))
      )
      for (const name of everyTable) {
        const [there, here] = [yield* to.use(dump(name)), yield* dump(name)]
        assert.isNotEmpty(here, name)
        assert.deepStrictEqual(name === "audit_log" ? there.filter((row) => !row.includes("olga")) : there, here, name)
      }
      const { sha256 = "" } = copied.find(({ table }) => table === "login_attempts") ?? {}
      assert.strictEqual(sha256, createHash("sha256").update(`["192.0.2.0/24","1","2"]\n`).digest("hex"))
    }))

  test("keeps the audit chain checkable, and the target continues it", () =>
    Effect.gen(function*() {
      const row = audit.insert({
        event: "account_contact_updated",
        actorKind: "acme",
        profile: "d\u00e9faut \u2028",
        userAgent: "a \"b\" \\ \ud83d\ude00",
        detail: { contacts_before: 0, contacts_after: 1, removed: [], added: ["mailto:\u00e4@example.org"] }
      })
      yield* row
      yield* chainRows(10)
      yield* Effect.replicateEffect(row, 5)
      yield* chainRows(10)
      const check = verify({ after: undefined, held: undefined, mostRows: 1e9, keyPath: undefined })
      const here = yield* check
      yield* run()
      const there = yield* to.use(check)
      assert.deepStrictEqual([there.head, there.verified, there.faults], [here.head, 5, []])
      assert.strictEqual(there.unchained.rows, 1, "the row about the transfer")
      yield* to.use(chainRows(10))
      const after = yield* to.use(verify({ after: undefined, held: here.head, mostRows: 1e9, keyPath: undefined }))
      assert.deepStrictEqual([after.verified, after.faults, after.unchained.rows], [6, [], 0])
    }))

  test("writes a row to the trail of the target, and numbers this row after the rows of the source", () =>
    Effect.gen(function*() {
      // Deletes the last row, so that the engine has given out one number more than there are rows.
      for (let row = 0; row < 3; row++) {
        yield* audit.insert({
          event: "account_key_changed",
          actorKind: "acme",
          detail: { key_fp: "", previous_key_fp: "" }
        })
      }
      const given = yield* count("SELECT max(id) FROM audit_log")
      yield* sql(`DELETE FROM audit_log WHERE id = ${given}`)
      const { total } = yield* run()
      const [row] = yield* to.use(sql("SELECT id, event, actor_id, detail FROM audit_log ORDER BY id DESC LIMIT 1"))
      assert.deepStrictEqual({ ...row, id: Number(row?.id) }, {
        id: given + 1,
        event: "database_transferred",
        actor_id: "olga",
        detail: JSON.stringify({ tables: tables.length, rows: total })
      })
    }))

  test("reports its progress page by page", () =>
    Effect.gen(function*() {
      yield* populate
      const told: Array<Counted> = []
      yield* run((so) => Effect.sync(() => void told.push(so)))
      const of = (name: string) => told.filter(({ table }) => table === name).map(({ rows }) => rows)
      assert.deepStrictEqual(of("orders"), [1000, orders])
      assert.deepStrictEqual(of("order_identifiers"), [1000, 2000, 2 * orders])
      assert.deepStrictEqual(of("crls"), [1])
    }))

  test("writes only the record of the transfer if the source is empty", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* run()).total, 0)
      assert.strictEqual(yield* to.use(count("SELECT count(*) FROM audit_log")), 1)
    }))

  test("refuses a target that has rows, and names every table with rows", () =>
    Effect.gen(function*() {
      yield* populate
      yield* to.use(sql("INSERT INTO nonces (value, created_at) VALUES ('x', 1)"))
      yield* to.use(sql("INSERT INTO expiry_digests (profile, sent_at) VALUES ('p', 1)"))
      const error = yield* refused
      assert.include(error, { _tag: "TransferRefused", reason: "occupied" })
      assert.match(
        "detail" in error ? error.detail : "",
        /^The target is not empty: there are rows in .*(?:nonces.*expiry_digests|expiry_digests.*nonces).*\.$/
      )
      assert.strictEqual(yield* to.use(count("SELECT count(*) FROM orders")), 0)
    }))

  test("refuses while processes that serve from the source were seen recently, and names these processes", () =>
    Effect.gen(function*() {
      const seen = (at: number) =>
        sql(
          `INSERT INTO workers (owner, roles, version, started_at, last_seen_at) VALUES ('w${at}', 'acme', '1', 1, ${at})`
        )
      yield* seen(now - 31)
      yield* withServerClock(run())
      yield* to.use(sql("DELETE FROM audit_log"))
      yield* to.use(sql("DELETE FROM workers"))
      yield* seen(now - 30)
      assert.deepInclude(yield* withServerClock(refused), { _tag: "StillServed", owners: [`w${now - 30}`] })
      // The clock of this host is a minute ahead.
      if (source.dialect === "postgres") {
        yield* TestClock.setTime((now + 60) * 1000)
        assert.deepInclude(yield* withServerClock(refused, now), { _tag: "StillServed" })
      }
    }))

  test("refuses while a registered process of this host exists, even if the process was not seen recently", () =>
    Effect.gen(function*() {
      const owner = workers.ownerOf(workers.here(), { host: "here", pid: process.pid, uuid: "a" })
      yield* sql(
        `INSERT INTO workers (owner, roles, version, started_at, last_seen_at) VALUES ('${owner}', 'acme', '1', 1, 1)`
      )
      assert.deepInclude(yield* refused, { _tag: "StillServed", owners: [owner] })
    }))

  test("prevents others from writing to the source or serving from the source until the transfer is done", () =>
    Effect.scoped(Effect.gen(function*() {
      yield* populate
      const attempt: Effect.Effect<unknown, unknown> = source.dialect === "sqlite"
        ? Effect.try(() => {
          const file = new Sqlite(from.url().slice("sqlite://".length), { timeout: 0 })
          try {
            file.exec("DELETE FROM nonces")
          } finally {
            file.close()
          }
        })
        : Effect.provideService(refuseCopied, Database, yield* from.another)
      const tried = yield* Effect.cached(Effect.exit(attempt))
      yield* run(() => Effect.asVoid(tried))
      assert.strictEqual((yield* tried)._tag, "Failure")
      yield* attempt
    })))

  if (source.dialect === "postgres") {
    const serving = Layer.build(
      Layer.suspend(() =>
        Postgres.layer({ url: Redacted.make(from.url()), pool_max: 1, acquire_timeout_ms: 5000, isServing: true })
      )
    )

    test("refuses while a process serves, even if no process was seen recently", () =>
      Effect.scoped(Effect.gen(function*() {
        const scope = yield* Scope.make()
        yield* Scope.provide(serving, scope)
        const error = yield* refused
        assert.include(error, { _tag: "TransferRefused", reason: "served" })
        assert.match(
          "detail" in error ? error.detail : "",
          /^Stop every server first: one is connected to the source, from \S+ \(pid \d+ of PostgreSQL\)\.$/
        )
        yield* Scope.close(scope, Exit.void)
        yield* Effect.retry(run(), { times: 100 })
      })))

    test("prevents processes from starting to serve while it copies", () =>
      Effect.scoped(Effect.gen(function*() {
        const tried = yield* Effect.cached(Effect.scoped(Effect.result(serving)))
        yield* run(() => Effect.asVoid(tried))
        const result = yield* tried
        assert.include(Result.isFailure(result) ? String(result.failure.cause) : "", "a transfer copies this database")
        yield* serving
      })))
  }

  test("refuses if the schemas differ, and names both schemas", () =>
    Effect.gen(function*() {
      const names = yield* known
      const last = names.at(-1) ?? ""
      const applied =
        "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (9999, '9999_later', 'x', 1)"
      const gone = "DELETE FROM schema_migrations WHERE version = 9999"
      yield* to.use(sql(applied))
      assert.deepInclude(yield* refused, { _tag: "SchemasDiffer", source: last, target: "9999_later", isBehind: false })
      yield* sql(applied)
      assert.deepInclude(yield* refused, { _tag: "SchemasDiffer", source: "9999_later", target: "9999_later" })
      yield* to.use(sql(gone))
      assert.deepInclude(yield* refused, { _tag: "SchemasDiffer", source: "9999_later", target: last, isBehind: false })
      yield* sql(gone)
      const behind = yield* Effect.flip(transfer.run(olga, to.driver(), [...names, "9999_later"], quietly))
      assert.deepInclude(behind, { _tag: "SchemasDiffer", source: last, target: last })
      const [row] = yield* to.use(sql(`SELECT version, checksum FROM schema_migrations WHERE name = '${last}'`))
      yield* to.use(sql(`DELETE FROM schema_migrations WHERE name = '${last}'`))
      assert.deepInclude(yield* refused, {
        _tag: "SchemasDiffer",
        source: last,
        target: names.at(-2) ?? "",
        isBehind: true
      })
      yield* to.use(
        sql(
          `INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (${
            String(row?.version)
          }, '${last}', '${String(row?.checksum)}', 1)`
        )
      )
    }))

  it.effect("refuses the source itself as the target, even through another connection", () =>
    Effect.scoped(from.use(Effect.gen(function*() {
      const again = yield* from.another
      const error = yield* Effect.flip(Transfer.plan(from.driver(), again))
      assert.include(error, { _tag: "TransferRefused", reason: "same" })
    }))))

  it.effect("refuses the source as the target even if the number of its lock is the largest possible number", () =>
    Effect.scoped(from.use(Effect.gen(function*() {
      const again = yield* from.another
      const error = yield* Effect.flip(
        Effect.provideService(Transfer.plan(from.driver(), again), Random.Random, largest)
      )
      assert.include(error, { _tag: "TransferRefused", reason: "same" })
    }))))

  test("keeps nothing if a write has failed, and succeeds at the second attempt", () =>
    Effect.gen(function*() {
      yield* populate
      yield* to.use(breakWrites(to.dialect, { table: "login_attempts", operation: "INSERT" }))
      const error = yield* refused
      assert.strictEqual(error._tag, "StorageFailed")
      yield* to.use(mend(to.dialect))
      assert.isTrue(yield* to.use(isEmpty))
      assert.strictEqual((yield* run()).total, populatedRows)
    }))

  test("keeps nothing if the copy differs from what was read", () =>
    Effect.gen(function*() {
      yield* populate
      const late = to.dialect === "sqlite"
        ? [
          "CREATE TRIGGER meddles AFTER INSERT ON nonces WHEN NEW.value = 'A' BEGIN DELETE FROM nonces WHERE value = 'A'; END"
        ]
        : [
          "CREATE FUNCTION meddles() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.value = NEW.value || '?'; RETURN NEW; END $$",
          "CREATE TRIGGER meddles BEFORE INSERT ON nonces FOR EACH ROW EXECUTE FUNCTION meddles()"
        ]
      for (const text of late) yield* to.use(sql(text))
      const error = yield* refused
      yield* to.use(sql(to.dialect === "sqlite" ? "DROP TRIGGER meddles" : "DROP FUNCTION meddles CASCADE"))
      assert.include(error, { _tag: "TransferRefused", reason: "differs" })
      assert.isTrue(yield* to.use(isEmpty))
    }))

  it.effect.each([1, 21, 60, 110])(
    "keeps nothing if the process ends after %d statements",
    (statements) =>
      from.use(Effect.gen(function*() {
        yield* populate
        const { driver } = yield* killedAfter(to.driver(), statements)
        yield* Effect.flip(Transfer.copy(from.driver(), driver, quietly))
        assert.isTrue(yield* to.use(isEmpty))
      }))
  )
})

describe("a value that the target engine cannot store", () => {
  const from = useDatabase(sqlite)
  const to = useDatabase(postgres)

  it.effect("is refused with a message that names its table and column", () =>
    from.use(Effect.gen(function*() {
      yield* sql("INSERT INTO login_attempts (key, window_started_at, attempts) VALUES (char(65, 0, 66), 1, 1)")
      const error = yield* Effect.flip(Transfer.copy(from.driver(), to.driver(), quietly))
      assert.include(error, { _tag: "TransferRefused", reason: "value" })
      assert.include("detail" in error ? error.detail : "", "login_attempts.key")
    })))
})

describe("a transfer to another engine and back", () => {
  const from = useDatabase(sqlite)
  const over = useDatabase(postgres)
  const back = useDatabase(sqlite)

  it.effect("keeps the digests unchanged", () =>
    Effect.gen(function*() {
      yield* from.use(populate)
      const there = yield* Transfer.copy(from.driver(), over.driver(), quietly)
      const again = yield* Transfer.copy(over.driver(), back.driver(), quietly)
      assert.deepStrictEqual(again, there)
      assert.strictEqual(new Set(there.map(({ sha256 }) => sha256)).size, tables.length)
    }).pipe(Effect.provideServiceEffect(Database, Effect.sync(from.driver))))
})
