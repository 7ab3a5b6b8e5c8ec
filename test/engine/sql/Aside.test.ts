import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { getPriority } from "node:os"
import { assert, describe } from "vitest"
import { bytes, int, text } from "../../../src/engine/sql/Column.ts"
import { aside, Database } from "../../../src/engine/sql/Database.ts"
import { all, run } from "../../../src/engine/sql/Query.ts"
import { currentAsker } from "../../../src/engine/sql/ReaderSemaphore.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { endless } from "../../support/Endless.ts"
import { eventsOf, openDriver } from "../../support/Graph.ts"
import { longEnough } from "../../support/LongEnough.ts"

const insert = statement({
  name: "test_insert",
  params: { value: text() },
  row: { value: text() },
  sql: () => `INSERT INTO nonces (value, created_at) VALUES (:value, 0) RETURNING value AS "value"`
})

const readValues = statement({
  name: "test_values",
  params: { octets: bytes, above: int },
  row: { value: text(), octets: bytes },
  sql: ({ dialect }) =>
    `SELECT value AS "value", ${
      dialect === "postgres" ? ":octets::bytea" : ":octets"
    } AS "octets" FROM nonces WHERE created_at > :above ORDER BY value`
})

const settingStatement = statement({
  name: "test_setting",
  params: { name: text() },
  row: { value: text() },
  sql: () => `SELECT current_setting(:name) AS "value"`
})

const together = { concurrency: "unbounded" } as const

/** Returns, for each process that reads a SQLite file for this process, by how much its priority is lowered. */
const readersLower = (): ReadonlyArray<number> =>
  readdirSync("/proc").filter((entry) => /^\d+$/.test(entry)).map(Number).flatMap((pid) => {
    try {
      const isChild = new RegExp(`^PPid:\\s*${process.pid}$`, "m").test(readFileSync(`/proc/${pid}/status`, "latin1"))
      const isReader = isChild && readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("sqliteReader")
      return isReader ? [getPriority(pid) - getPriority()] : []
    } catch {
      return [] // This process has ended in the meantime.
    }
  })

describe.each(databases)("reads aside on $name", (backend) => {
  const database = useDatabase(backend)

  /** Provides this database with separate readers. */
  const beside = <A, E>(body: Effect.Effect<A, E, Database>) =>
    Effect.scoped(Effect.flatMap(
      openDriver(database.url(), 2, undefined, 1),
      (driver) => Effect.provideService(body, Database, driver)
    ))

  it.live("return the same rows as any other read", () =>
    beside(Effect.gen(function*() {
      yield* run(insert, { value: "one" })
      const read = all(readValues, { octets: Buffer.from([0, 255]), above: -1 })
      const there = yield* aside(Effect.zip(read, read))
      const here = yield* read
      assert.deepStrictEqual(there, [here, here])
      assert.deepStrictEqual(here.map(({ octets, value }) => [value, [...octets]]), [["one", [0, 255]]])
    })))

  it.live("are cancelled by the engine at their limit, and do not delay other statements until then", () =>
    beside(Effect.gen(function*() {
      yield* longEnough(500, (millis) =>
        Effect.gen(function*() {
          const failing = yield* Effect.forkChild(Effect.flip(aside(all(endless, {}), millis)))
          yield* Effect.yieldNow
          yield* run(insert, { value: `meanwhile, of ${millis} ms` })
          const isUnderWay = failing.pollUnsafe() === undefined
          const failed = yield* Fiber.join(failing)
          assert.deepStrictEqual([failed.statement, failed.detail], ["test_endless", `not done within ${millis} ms`])
          return isUnderWay ? true : undefined
        }))
      const found = yield* aside(all(readValues, { octets: Buffer.alloc(0), above: -1 }))
      assert.include(found.map(({ value }) => value), "meanwhile, of 500 ms")
      assert.strictEqual((yield* Database).connections().busy, 0)
    })))

  it.live("leave connections to requests, however many of them are made at once", () =>
    Effect.scoped(Effect.gen(function*() {
      const driver = yield* openDriver(database.url(), 3, undefined, 2)
      yield* longEnough(500, (millis) =>
        Effect.gen(function*() {
          const read = Effect.flip(aside(all(endless, {}), millis))
          const reads = yield* Effect.forkChild(Effect.all(Array.from({ length: 6 }, () => read), together))
          yield* Effect.yieldNow
          yield* run(insert, { value: `beside six, of ${millis} ms` })
          const areUnderWay = reads.pollUnsafe() === undefined
          yield* Fiber.join(reads)
          return areUnderWay ? true : undefined
        })).pipe(Effect.provideService(Database, driver))
    })))

  it.live("share one time limit if they are made together", () =>
    beside(Effect.gen(function*() {
      const forever = Effect.forever(all(readValues, { octets: Buffer.alloc(0), above: -1 }))
      assert.strictEqual((yield* Effect.flip(aside(forever, 300))).detail, "not done within 300 ms")
    })))

  if (backend.dialect === "postgres") {
    it.live("have a time limit on the server, which is the remaining time of their caller", () =>
      beside(Effect.gen(function*() {
        const bound = Effect.map(
          all(settingStatement, { name: "statement_timeout" }),
          ([row]) => Number(/^(\d+)ms$/.exec(row?.value ?? "")?.[1])
        )
        const [first, later] = yield* aside(
          Effect.flatMap(bound, (told) =>
            Effect.map(
              Effect.repeat(bound, { until: (now) => now !== told }),
              (now) => [told, now] as const
            )),
          900
        )
        assert.isAtMost(first, 900)
        assert.isAtMost(later, Math.ceil(first * 0.9))
      })))
  }

  it.live("get fewer resources than requests for certificates, either one processor only or a lower priority", () =>
    beside(Effect.gen(function*() {
      if (backend.dialect === "postgres") {
        const read = all(settingStatement, { name: "max_parallel_workers_per_gather" })
        const [there] = yield* aside(read)
        const [here] = yield* read
        assert.deepStrictEqual([there?.value, here?.value === "0"], ["0", false])
      } else {
        yield* aside(all(readValues, { octets: Buffer.alloc(0), above: -1 }))
        // Readers of earlier tests might not have ended yet.
        assert.deepStrictEqual([...new Set(readersLower())], [10])
      }
    })))

  it.live("leave one connection to others if one caller makes many of them", () =>
    Effect.scoped(Effect.gen(function*() {
      // A read fails if it waits for the endless ones.
      const driver = yield* openDriver(database.url(), 3, 2000, 2)
      const as = (name: string) => Effect.provideService(currentAsker, { host: name, network: name })
      const values = aside(all(readValues, { octets: Buffer.alloc(0), above: -1 }))
      const read = as("greedy")(Effect.flip(aside(all(endless, {}), 5000)))
      yield* Effect.gen(function*() {
        const greedy = yield* Effect.forkChild(Effect.all(Array.from({ length: 20 }, () => read), together))
        yield* Effect.yieldNow
        assert.deepStrictEqual(yield* as("newcomer")(values), [])
        assert.deepStrictEqual(yield* values, [], "the service itself")
        yield* Fiber.join(greedy)
      }).pipe(Effect.provideService(Database, driver))
    })))

  /** Completes when an endless read has begun. */
  const underWay = Effect.gen(function*() {
    const { connections, dialect, single } = yield* Database
    const isActive = { text: activeText, order: [], reads: true }
    const isThere = dialect === "sqlite"
      ? Effect.map(Effect.yieldNow, () => connections().busy > 0)
      : Effect.map(Effect.orDie(single(isActive, [])), ([row]) => Number(row?.["n"]) > 0)
    yield* Effect.repeat(Effect.suspend(() => isThere), { until: (isNow) => isNow })
  })
  const activeText =
    "SELECT count(*) AS n FROM pg_stat_activity WHERE state = 'active' AND datname = current_database() AND query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"

  it.live("are cancelled by the engine if their caller is interrupted, whether they have begun or not", () => {
    const records: Array<Record> = []
    return Effect.scoped(Effect.gen(function*() {
      const driver = yield* openDriver(database.url(), 2, undefined, 1)
      yield* Effect.gen(function*() {
        const read = yield* Effect.forkChild(aside(all(endless, {}), 60_000))
        yield* underWay
        const waiting = yield* Effect.forkChild(aside(all(endless, {}), 60_000))
        yield* Effect.yieldNow
        for (const fiber of [waiting, read]) {
          // The server itself would end a statement after thirty seconds.
          yield* Effect.timeout(Fiber.interrupt(fiber), "25 seconds")
          assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
        }
        assert.strictEqual(driver.connections().busy, 0)
        assert.deepStrictEqual(yield* aside(all(readValues, { octets: Buffer.alloc(0), above: -1 })), [])
        if (backend.dialect === "postgres") {
          assert.deepStrictEqual(yield* driver.single({ text: activeText, order: [], reads: true }, []), [{ n: 0 }])
        }
        assert.notInclude(eventsOf(records), "db_statement_failed")
      }).pipe(Effect.provideService(Database, driver))
    })).pipe(Effect.provide(layerMemory(records)))
  })

  if (backend.dialect === "postgres") {
    const briefly = statement({
      name: "test_briefly",
      params: { seconds: text() },
      row: { n: int },
      sql: () => `SELECT 1 AS "n" FROM pg_sleep(:seconds::float8)`
    })

    it.live("do not affect any other statement whenever they are cancelled", () =>
      Effect.scoped(Effect.gen(function*() {
        const driver = yield* openDriver(database.url(), 2, undefined, 1)
        yield* Effect.gen(function*() {
          for (let round = 0; round < 60; round++) {
            const read = yield* Effect.forkChild(aside(all(briefly, { seconds: "0.001" })))
            // The interruption comes after this many other statements, so the read has sometimes ended by then and
            // sometimes not.
            for (let other = 0; other < round % 6; other++) yield* all(settingStatement, { name: "jit" })
            const interrupted = yield* Effect.forkChild(Fiber.interrupt(read))
            yield* Effect.all(
              Array.from({ length: 4 }, () => all(briefly, { seconds: "0.001" })),
              together
            )
            yield* Fiber.join(interrupted)
          }
        }).pipe(Effect.provideService(Database, driver))
      })))
  }

  it.live("cannot write", () =>
    beside(Effect.gen(function*() {
      const failed = yield* Effect.flip(aside(run(insert, { value: "never" })))
      assert.match(failed.detail, /readonly|read-only/)
      assert.deepStrictEqual(yield* all(readValues, { octets: Buffer.alloc(0), above: -1 }), [])
    })))

  it.live("wait no longer for a connection than the configured time, like transactions", () => {
    const records: Array<Record> = []
    return Effect.scoped(Effect.gen(function*() {
      // Opening the connection also counts, and may take longer than this on a busy machine.
      const opened = Effect.retry(Effect.sandbox(openDriver(database.url(), 1, 500)), { times: 100 })
      const driver = yield* Effect.catch(opened, Effect.failCause)
      const over = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      const holding = yield* Effect.forkChild(
        driver.exclusive(() => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(over)))
      )
      yield* Deferred.await(begun)
      const failed = yield* Effect.flip(Effect.provideService(run(insert, { value: "late" }), Database, driver))
      assert.include(failed.detail, "no connection within 500 ms")
      assert.deepStrictEqual(eventsOf(records).filter((event) => event === "db_pool_timeout"), ["db_pool_timeout"])
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holding)
      yield* Effect.provideService(run(insert, { value: "in time" }), Database, driver)
    })).pipe(Effect.provide(layerMemory(records)))
  })
})
