import { it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { int, text } from "../../../src/engine/sql/Column.ts"
import { afterCommit, Database, StorageFailed, transaction } from "../../../src/engine/sql/Database.ts"
import { all, run } from "../../../src/engine/sql/Query.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import { withinSpan } from "../../../src/engine/telemetry/EngineLog.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { bump, insert, read } from "../../store/NonceStatements.ts"
import { sqlite } from "../../support/Databases.ts"
import { column, openDriver, sql } from "../../support/Graph.ts"
import { onSystemClock, useStore } from "../../support/UseTests.ts"

const insertOrRollback = statement({
  name: "test_insert_or_rollback",
  params: { value: text() },
  row: {},
  sql: () => "INSERT OR ROLLBACK INTO nonces (value, created_at) VALUES (:value, 0)"
})

const setTo = statement({
  name: "test_set",
  params: { value: text(), to: int },
  row: {},
  sql: () => "UPDATE nonces SET created_at = :to WHERE value = :value"
})

const everything = statement({
  name: "test_everything",
  params: {},
  row: { value: text() },
  sql: () => "SELECT value FROM nonces ORDER BY value"
})

const broken = statement({ name: "test_broken", params: {}, row: {}, sql: () => "DELETE FROM no_such_table" })

const values = column("SELECT value FROM nonces ORDER BY value")

const together = { concurrency: "unbounded" } as const

type Ending = Effect.Effect<unknown, unknown, Database>

/** The ways in which a body may fail. The row `taken` is already in the table. */
const endings: ReadonlyArray<readonly [string, Ending]> = [
  ["failure", Effect.fail("no")],
  ["defect", Effect.die("no")],
  ["interrupt", Effect.interrupt],
  ["broken statement", run(broken, {})],
  ["row that is there already", run(insert, { value: "taken" })],
  ["row that is there already, at which the engine ends the transaction", run(insertOrRollback, { value: "taken" })],
  ["trigger that refuses", run(insert, { value: "planted abort" })],
  ["trigger that refuses and keeps what was done so far", run(insert, { value: "planted fail" })],
  ["trigger at which the engine ends the transaction", run(insert, { value: "planted rollback" })]
]

describe("writes of one turn of the event loop on SQLite", () => {
  const { database, test } = useStore(sqlite, { around: onSystemClock })

  const planted = Effect.acquireRelease(
    Effect.forEach(
      ["abort", "fail", "rollback"],
      (kind) =>
        sql(`CREATE TRIGGER planted_${kind} BEFORE INSERT ON nonces WHEN NEW.value = 'planted ${kind}'
             BEGIN SELECT RAISE(${kind}, 'planted'); END`)
    ),
    () => Effect.forEach(["abort", "fail", "rollback"], (kind) => sql(`DROP TRIGGER planted_${kind}`))
  )

  test("are one transaction, in which each write sees the writes before it", () =>
    Effect.gen(function*() {
      const other = yield* database.another
      const seen = yield* Effect.forEach(
        ["a", "b", "c"],
        (value) =>
          transaction(Effect.gen(function*() {
            yield* run(insert, { value })
            return {
              inside: (yield* all(everything, {})).map(({ value }) => value),
              outside: yield* Effect.provideService(values, Database, other)
            }
          })),
        together
      )
      assert.deepStrictEqual(seen, [
        { inside: ["a"], outside: [] },
        { inside: ["a", "b"], outside: [] },
        { inside: ["a", "b", "c"], outside: [] }
      ])
      assert.deepStrictEqual(yield* Effect.provideService(values, Database, other), ["a", "b", "c"])
    }))

  test("take effect in the order of the calls, even if there are more than fit into one group", () =>
    Effect.gen(function*() {
      yield* run(insert, { value: "last" })
      const read = yield* Effect.forEach(
        Array.from({ length: 300 }, (_, index) => index + 1),
        (to) =>
          to % 3 === 0
            ? Effect.as(run(setTo, { value: "last", to }), [{ createdAt: to + 1 }])
            : transaction(Effect.andThen(run(setTo, { value: "last", to }), all(bump, { value: "last" }))),
        together
      )
      assert.deepStrictEqual(read.map(([row]) => row?.createdAt), Array.from({ length: 300 }, (_, index) => index + 2))
      assert.deepStrictEqual(yield* sql("SELECT created_at FROM nonces"), [{ created_at: 300 }])
    }))

  for (const [name, ending] of endings) {
    test(`are all stored except those of a body that ends with a ${name}`, () =>
      Effect.gen(function*() {
        yield* planted
        yield* run(insert, { value: "taken" })
        for (const at of [0, 2, 4]) {
          const told: Array<string> = []
          const names = Array.from({ length: 5 }, (_, index) => index === at ? "failed" : `${at} stored ${index}`)
          const exits = yield* Effect.forEach(
            names,
            (value) =>
              Effect.exit(transaction(Effect.gen(function*() {
                yield* afterCommit(Effect.sync(() => void told.push(value)))
                yield* run(insert, { value })
                if (value === "failed") {
                  yield* ending
                  yield* run(insert, { value: "never reached" })
                }
                return value
              }))),
            together
          )
          const stored = names.filter((value) => value !== "failed")
          for (const [index, exit] of exits.entries()) {
            assert.strictEqual(Exit.isSuccess(exit), index !== at, `${at}: ${index} ${String(exit)}`)
          }
          assert.deepStrictEqual(told, stored)
          const rows = yield* values
          assert.deepStrictEqual(rows.filter((value) => value.startsWith(`${at}`)), stored)
          assert.notInclude(rows, "failed")
          assert.notInclude(rows, "never reached")
        }
      }))
  }

  test("fail alone if they are single statements", () =>
    Effect.gen(function*() {
      yield* planted
      const written = ["a", "planted rollback", "b", "a", "planted fail", "c", "planted abort", "d"]
      const exits = yield* Effect.forEach(written, (value) => Effect.exit(run(insert, { value })), together)
      assert.deepStrictEqual(
        written.filter((_, index) => Exit.isSuccess(exits[index] ?? Exit.void)),
        ["a", "b", "c", "d"]
      )
      assert.deepStrictEqual(yield* values, ["a", "b", "c", "d"])
    }))

  test("may all fail, each with its own failure", () =>
    Effect.gen(function*() {
      const failures = yield* Effect.forEach(
        Array.from({ length: 20 }, (_, index) => `${index}`),
        (value) => Effect.flip(transaction(Effect.andThen(run(insert, { value }), Effect.fail(value)))),
        together
      )
      assert.deepStrictEqual(failures, Array.from({ length: 20 }, (_, index) => `${index}`))
      assert.deepStrictEqual(yield* values, [])
    }))

  test("are stored once even if the failure of another write makes them run again", () =>
    Effect.gen(function*() {
      yield* run(insert, { value: "counter" })
      let told = 0
      const runs: Array<number> = []
      const increments = yield* Effect.forEach(
        Array.from({ length: 30 }, (_, index) => index),
        (index) =>
          Effect.exit(transaction(Effect.gen(function*() {
            runs.push(index)
            yield* afterCommit(Effect.sync(() => void told++))
            const [row] = yield* all(bump, { value: "counter" })
            if (index % 10 === 7) return yield* Effect.fail("no")
            return row?.createdAt
          }))),
        together
      )
      assert.isAbove(runs.length, 30, "there was a second run")
      assert.deepStrictEqual(
        increments.filter(Exit.isSuccess).map(({ value }) => value),
        Array.from({ length: 27 }, (_, index) => index + 1)
      )
      assert.deepStrictEqual([told, (yield* all(read, { value: "counter" }))[0]?.createdAt], [27, 27])
    }))

  test("run afterCommit when all of them are visible to other processes", () =>
    Effect.gen(function*() {
      const other = yield* database.another
      const seen: Array<ReadonlyArray<string>> = []
      const look = Effect.map(Effect.provideService(values, Database, other), (rows) => void seen.push(rows))
      yield* Effect.forEach(
        ["a", "b"],
        (value) => transaction(Effect.andThen(afterCommit(look), run(insert, { value }))),
        together
      )
      assert.deepStrictEqual(seen, [["a", "b"], ["a", "b"]])
    }))

  test("are committed even if a caller is interrupted while it waits", () =>
    Effect.gen(function*() {
      const told: Array<string> = []
      const fibers = yield* Effect.forEach(["a", "b", "c"], (value) =>
        Effect.forkChild(transaction(Effect.andThen(
          afterCommit(Effect.sync(() => void told.push(value))),
          run(insert, { value })
        ))))
      yield* Effect.yieldNow
      const leaving = fibers[1] ?? assert.fail()
      leaving.interruptUnsafe()
      const exits = yield* Effect.forEach(fibers, Fiber.await)
      assert.deepStrictEqual(exits.map((exit) => exit._tag), ["Success", "Failure", "Success"])
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(leaving)))
      assert.deepStrictEqual(yield* values, ["a", "b", "c"])
      assert.sameMembers(told, ["a", "b", "c"])
    }))

  test("do not fail if the caller of another single write is interrupted before that write was sent", () =>
    Effect.gen(function*() {
      const leaving = yield* Effect.forkChild(run(insert, { value: "leaving" }))
      const staying = yield* Effect.forEach(["a", "b"], (value) => Effect.forkChild(run(insert, { value })))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(leaving)
      yield* Effect.forEach(staying, Fiber.join)
      assert.includeMembers([...yield* values], ["a", "b"])
    }))

  test("wait for a body that takes a long time, and are then stored", () =>
    Effect.gen(function*() {
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const long = yield* Effect.forkChild(transaction(Effect.gen(function*() {
        yield* run(insert, { value: "long" })
        yield* Deferred.succeed(begun, undefined)
        yield* Deferred.await(go)
        return yield* Effect.fail("after all")
      })))
      yield* Deferred.await(begun)
      const next = yield* Effect.forEach(["a", "b"], (value) => Effect.forkChild(run(insert, { value })))
      yield* Deferred.succeed(go, undefined)
      assert.strictEqual(yield* Effect.flip(Fiber.join(long)), "after all")
      yield* Effect.forEach(next, Fiber.join)
      assert.deepStrictEqual(yield* values, ["a", "b"])
    }))

  it.effect("all fail if another process keeps the database locked, and succeed when it is free again", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(database.url())
      const other = yield* database.another
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.forkChild(Effect.provideService(
        transaction(Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(go))),
        Database,
        other
      ))
      yield* Deferred.await(begun)
      const insertAll = Effect.forEach(["a", "b", "c"], (value) => Effect.exit(run(insert, { value })), together)
      const refused = yield* Effect.forkChild(Effect.provideService(insertAll, Database, driver))
      yield* TestClock.adjust("1 minute")
      for (const exit of yield* Fiber.join(refused)) {
        assert.instanceOf(
          Exit.isFailure(exit) ? exit.cause.reasons.find(Cause.isFailReason)?.error : undefined,
          StorageFailed
        )
      }
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(holder)
      assert.isTrue((yield* Effect.provideService(insertAll, Database, driver)).every(Exit.isSuccess))
    }))

  test("log failures with the facts of their own callers", () =>
    Effect.gen(function*() {
      const records: Array<Record> = []
      yield* Effect.forEach(
        ["one", "two", "three"],
        (request_id) => withinSpan({ request_id }, 0, Effect.exit(transaction(run(insert, { value: "same" })))),
        together
      ).pipe(Effect.provide(layerMemory(records)))
      assert.sameMembers(records.map(({ span }) => span["request_id"]), ["two", "three"], "each once")
    }))

  test("log failures without the facts of other callers if they have none themselves", () =>
    Effect.gen(function*() {
      const records: Array<Record> = []
      yield* Effect.all([
        withinSpan({ request_id: "neighbour" }, 0, run(insert, { value: "a" })),
        Effect.exit(run(broken, {}))
      ], together).pipe(Effect.provide(layerMemory(records)))
      assert.deepStrictEqual(records.map(({ event, span }) => ({ event, span })), [
        { event: "db_statement_failed", span: {} }
      ])
    }))
})
