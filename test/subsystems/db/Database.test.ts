import { it } from "@effect/vitest"
import { Cause, Deferred, Effect, Exit, Fiber, TestClock } from "effect"
import { statSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { int, text } from "../../../src/subsystems/db/Column.ts"
import type { Driver } from "../../../src/subsystems/db/Database.ts"
import { afterCommit, all, Database, run, StorageFailed, transaction } from "../../../src/subsystems/db/Database.ts"
import { statement } from "../../../src/subsystems/db/Statement.ts"
import type { Record } from "../../../src/subsystems/log/EventLog.ts"
import { EventLog } from "../../../src/subsystems/log/EventLog.ts"
import { databases, freshDirectory } from "../../support/Databases.ts"
import { count, eventsOf, openDriver, sql, useDatabase } from "../../support/Graph.ts"

const insert = statement({
  name: "test_insert",
  params: { value: text() },
  row: {},
  sql: () => "INSERT INTO nonces (value, created_at) VALUES (:value, 0)"
})

const bump = statement({
  name: "test_bump",
  params: { value: text() },
  row: { createdAt: int },
  sql: () => `UPDATE nonces SET created_at = created_at + 1 WHERE value = :value RETURNING created_at AS "createdAt"`
})

const read = statement({
  name: "test_read",
  params: { value: text() },
  row: { createdAt: int },
  sql: () => `SELECT created_at AS "createdAt" FROM nonces WHERE value = :value`
})

const broken = statement({ name: "test_broken", params: {}, row: {}, sql: () => "SELECT * FROM no_such_table" })

const total = count("SELECT count(*) FROM nonces")

describe.each(databases)("transactions on $name", (backend) => {
  const database = useDatabase(backend)
  const { dialect } = backend

  it.live("commit what they wrote and answer their value", () =>
    database.use(Effect.gen(function*() {
      const value = yield* transaction(Effect.as(run(insert, { value: "a" }), 42))
      assert.strictEqual(value, 42)
      assert.strictEqual(yield* total, 1)
    })))

  const endings: ReadonlyArray<readonly [string, Effect.Effect<never, string>, (exit: Exit.Exit<unknown, unknown>) => boolean]> = [
    ["failure", Effect.fail("no"), (exit) => Exit.isFailure(exit) && Cause.isFailType(exit.cause)],
    ["defect", Effect.die("no"), (exit) => Exit.isFailure(exit) && Cause.isDieType(exit.cause)],
    ["interrupt", Effect.interrupt, (exit) => Exit.isFailure(exit) && Cause.isInterruptedOnly(exit.cause)]
  ]
  for (const [name, ending, isSame] of endings) {
    it.live(`undo everything on ${name}, pass it on, and leave the connection usable`, () =>
      database.use(Effect.gen(function*() {
        for (let round = 0; round < 12; round++) {
          const exit = yield* Effect.exit(transaction(Effect.zipRight(run(insert, { value: "a" }), ending)))
          assert.isTrue(isSame(exit), String(exit))
        }
        assert.strictEqual(yield* total, 0)
        yield* transaction(run(insert, { value: "b" }))
        yield* run(insert, { value: "c" })
        assert.strictEqual(yield* total, 2)
      })))
  }

  it.live("undo everything on a failing statement, which is a typed failure naming it and no value", () =>
    database.use(Effect.gen(function*() {
      yield* run(insert, { value: "twice" })
      const error = yield* Effect.flip(transaction(
        Effect.zipRight(run(insert, { value: "once" }), run(insert, { value: "twice" }))
      ))
      assert.instanceOf(error, StorageFailed)
      assert.strictEqual(error.statement, "test_insert")
      assert.isFalse(error.transient)
      assert.notInclude(error.message, "INSERT")
      assert.strictEqual(yield* total, 1)
    })))

  it.live("a statement whose failure was swallowed does not pass for a commit", () =>
    database.use(Effect.gen(function*() {
      const exit = yield* Effect.exit(transaction(Effect.zipRight(
        run(insert, { value: "a" }),
        Effect.ignore(run(broken, {}))
      )))
      // PostgreSQL has given the transaction up by then; SQLite has not, and commits.
      assert.strictEqual(exit._tag, dialect === "postgres" ? "Failure" : "Success")
      assert.strictEqual(yield* total, dialect === "postgres" ? 0 : 1)
      yield* transaction(run(insert, { value: "b" }))
    })))

  it.live("join the one that is open", () =>
    database.use(Effect.gen(function*() {
      yield* Effect.exit(transaction(Effect.gen(function*() {
        yield* transaction(run(insert, { value: "inner" }))
        assert.strictEqual((yield* all(read, { value: "inner" })).length, 1, "own writes are seen")
        return yield* Effect.fail("outer")
      })))
      assert.strictEqual(yield* total, 0)
      yield* transaction(transaction(transaction(run(insert, { value: "deep" }))))
      assert.strictEqual(yield* total, 1)
    })))

  it.live("hide their writes from others until they have committed", () =>
    database.use(Effect.gen(function*() {
      const [written, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const fiber = yield* Effect.fork(transaction(Effect.gen(function*() {
        yield* run(insert, { value: "a" })
        yield* Deferred.succeed(written, undefined)
        yield* Deferred.await(go)
      })))
      yield* Deferred.await(written)
      const other = yield* database.another
      assert.strictEqual(yield* Effect.provideService(total, Database, other), 0)
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(fiber)
      assert.strictEqual(yield* Effect.provideService(total, Database, other), 1)
    })).pipe(Effect.scoped))

  it.live("are not interrupted half way: they commit whole, and the fiber ends afterwards", () =>
    database.use(Effect.gen(function*() {
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const fiber = yield* Effect.fork(transaction(Effect.gen(function*() {
        yield* run(insert, { value: "first" })
        yield* Deferred.succeed(begun, undefined)
        yield* Deferred.await(go)
        yield* run(insert, { value: "second" })
      })))
      yield* Deferred.await(begun)
      const interrupted = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(interrupted)
      assert.strictEqual(yield* total, 2)
    })))

  it.live("interrupted while they wait for a connection, change nothing and lose no connection", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(database.url(), 1)
      yield* Effect.provideService(
        Effect.gen(function*() {
          for (let round = 0; round < 5; round++) {
            const [held, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
            const holder = yield* Effect.fork(transaction(Effect.zipRight(Deferred.succeed(held, undefined), Deferred.await(go))))
            yield* Deferred.await(held)
            const waiter = yield* Effect.fork(transaction(Effect.fail("never stored")))
            yield* Effect.yieldNow()
            const interrupted = yield* Effect.fork(Fiber.interrupt(waiter))
            yield* Deferred.succeed(go, undefined)
            yield* Fiber.join(holder)
            yield* Fiber.join(interrupted)
          }
          yield* transaction(run(insert, { value: "still" }))
          assert.strictEqual(yield* total, 1)
        }),
        Database,
        driver
      )
    }).pipe(Effect.scoped))

  it.live("afterCommit runs once, after the commit, in order, with the connection free again", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(database.url(), 1)
      const other = yield* database.another
      const seen: Array<string> = []
      const note = (name: string) =>
        Effect.gen(function*() {
          const visible = yield* Effect.provideService(total, Database, other)
          seen.push(`${name} ${visible}`)
          // On the only connection there is: a transaction of its own.
          yield* Effect.provideService(transaction(run(insert, { value: name })), Database, driver)
        }).pipe(Effect.orDie)
      yield* Effect.provideService(
        transaction(Effect.gen(function*() {
          yield* afterCommit(note("first"))
          yield* transaction(afterCommit(note("second")))
          yield* run(insert, { value: "body" })
          assert.deepStrictEqual(seen, [])
        })),
        Database,
        driver
      )
      assert.deepStrictEqual(seen, ["first 1", "second 2"])
    }).pipe(Effect.scoped))

  it.live("afterCommit never runs after a rollback, and at once outside a transaction", () =>
    database.use(Effect.gen(function*() {
      let runs = 0
      const once = Effect.sync(() => void runs++)
      for (const [, ending] of endings) {
        yield* Effect.exit(transaction(Effect.zipRight(afterCommit(once), ending)))
        assert.strictEqual(runs, 0)
      }
      yield* Effect.exit(transaction(Effect.zipRight(afterCommit(once), run(broken, {}))))
      assert.strictEqual(runs, 0)
      yield* afterCommit(once)
      assert.strictEqual(runs, 1)
    })))

  it.live("a failing COMMIT is a typed failure that stores nothing, and the connection is usable afterwards", () =>
    database.use(Effect.gen(function*() {
      const driver = database.driver()
      let failing = true
      let told = 0
      const reluctant: Driver = {
        ...driver,
        commit: (connection) => failing ? Effect.zipRight(connection.executeRaw("SELECT * FROM no_such_table", []), Effect.void) : driver.commit(connection)
      }
      const attempt = transaction(Effect.zipRight(run(insert, { value: "a" }), afterCommit(Effect.sync(() => void told++))))
      const error = yield* Effect.flip(Effect.provideService(attempt, Database, reluctant))
      assert.strictEqual(error._tag, "StorageFailed")
      assert.strictEqual(told, 0)
      assert.strictEqual(yield* total, 0)
      failing = false
      yield* Effect.provideService(attempt, Database, reluctant)
      assert.strictEqual(told, 1)
      assert.strictEqual(yield* total, 1)
    })))

  it.live("a transient failure repeats the whole body, a bounded number of times, and afterCommit once", () =>
    database.use(Effect.gen(function*() {
      const driver = database.driver()
      const deadlocking: Driver = { ...driver, describe: () => ({ detail: "deadlock", transient: true }) }
      let bodies = 0
      let told = 0
      const body = (until: number) =>
        Effect.gen(function*() {
          bodies++
          yield* run(insert, { value: `${bodies}` })
          yield* afterCommit(Effect.sync(() => void told++))
          if (bodies < until) yield* run(broken, {})
        })
      yield* Effect.provideService(transaction(body(3)), Database, deadlocking)
      assert.deepStrictEqual([bodies, told], [3, 1])
      assert.deepStrictEqual(yield* total, 1)
      bodies = 0
      const error = yield* Effect.flip(Effect.provideService(transaction(body(Number.POSITIVE_INFINITY)), Database, deadlocking))
      assert.instanceOf(error, StorageFailed)
      assert.deepStrictEqual([bodies, told], [4, 1])
    })))

  it.live("a failed statement is logged by name, without its text or values", () =>
    database.use(Effect.gen(function*() {
      const records: Array<Record> = []
      yield* run(insert, { value: "planted-value" })
      const fail = Effect.zipRight(Effect.ignore(run(broken, {})), Effect.ignore(run(insert, { value: "planted-value" })))
      yield* Effect.provide(fail, EventLog.layerMemory(records))
      assert.deepStrictEqual(records.map(({ fields }) => fields.statement), ["test_broken", "test_insert"])
      assert.deepStrictEqual(eventsOf(records), ["db_statement_failed", "db_statement_failed"])
      assert.notInclude(JSON.stringify(records), "planted-value")
    })))

  it.live("lost updates do not happen: 20 increments at once through two openings", () =>
    Effect.gen(function*() {
      const other = yield* database.another
      yield* database.use(run(insert, { value: "counter" }))
      const increment = transaction(Effect.gen(function*() {
        yield* all(read, { value: "counter" })
        yield* all(bump, { value: "counter" })
      }))
      yield* Effect.all(
        Array.from({ length: 20 }, (_, index) =>
          Effect.provideService(increment, Database, index % 2 === 0 ? other : database.driver())),
        { concurrency: "unbounded" }
      )
      const [row] = yield* database.use(all(read, { value: "counter" }))
      assert.strictEqual(row?.createdAt, 20)
    }).pipe(Effect.scoped))
})

describe("PostgreSQL alone", () => {
  const [, postgres] = databases
  const database = useDatabase(postgres)

  it.live("a real deadlock is retried as a whole: both transactions commit", () =>
    database.use(Effect.gen(function*() {
      yield* run(insert, { value: "x" })
      yield* run(insert, { value: "y" })
      const [one, two] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let attempts = 0
      const crossing = (first: string, second: string, mine: Deferred.Deferred<void>, theirs: Deferred.Deferred<void>) =>
        transaction(Effect.gen(function*() {
          attempts++
          yield* all(bump, { value: first })
          yield* Deferred.succeed(mine, undefined)
          yield* Deferred.await(theirs)
          yield* all(bump, { value: second })
        }))
      yield* Effect.all([crossing("x", "y", one, two), crossing("y", "x", two, one)], { concurrency: 2 })
      assert.isAbove(attempts, 2, "there was a deadlock")
      assert.deepStrictEqual(yield* all(read, { value: "x" }), [{ createdAt: 2 }])
      assert.deepStrictEqual(yield* all(read, { value: "y" }), [{ createdAt: 2 }])
    })))

  it.live("statements, locks and idle transactions are bounded by the server", () =>
    database.use(Effect.gen(function*() {
      for (const name of ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]) {
        assert.notStrictEqual((yield* sql(`SHOW ${name}`))[0]?.[name], "0", name)
      }
    })))

  it.live("a pool with no connection left fails in time, is logged, and recovers", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(database.url(), 1, 1500)
      const [held, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holder = yield* Effect.fork(Effect.provideService(
        transaction(Effect.zipRight(Deferred.succeed(held, undefined), Deferred.await(go))),
        Database,
        driver
      ))
      yield* Deferred.await(held)
      const records: Array<Record> = []
      const error = yield* Effect.flip(run(insert, { value: "late" })).pipe(
        Effect.provideService(Database, driver),
        Effect.provide(EventLog.layerMemory(records))
      )
      assert.strictEqual(error._tag, "StorageFailed")
      assert.include(eventsOf(records), "db_pool_timeout")
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(holder)
      yield* Effect.provideService(run(insert, { value: "now" }), Database, driver)
    }).pipe(Effect.scoped))
})

describe("SQLite alone", () => {
  const [sqlite] = databases
  const database = useDatabase(sqlite)

  it.live("a writing transaction begins with BEGIN IMMEDIATE: nobody else writes from its first statement on", () =>
    database.use(Effect.gen(function*() {
      const other = yield* database.another
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const sent: Array<string> = []
      const driver = database.driver()
      const listening: Driver = {
        ...driver,
        exclusive: (use) =>
          driver.exclusive((connection) =>
            use({
              ...connection,
              executeRaw: (text, params) => {
                sent.push(text)
                return connection.executeRaw(text, params)
              }
            })
          )
      }
      const holder = yield* Effect.fork(Effect.provideService(
        transaction(Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(go))),
        Database,
        listening
      ))
      yield* Deferred.await(begun)
      assert.deepStrictEqual(sent, ["BEGIN IMMEDIATE"])
      const refused = yield* Effect.exit(other.exclusive((connection) => connection.executeRaw("BEGIN IMMEDIATE", [])))
      assert.match(String(refused), /SQLITE_BUSY|locked|execute/)
      assert.isTrue(Exit.isFailure(refused))
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(holder)
      assert.deepStrictEqual(sent, ["BEGIN IMMEDIATE", "COMMIT"])
    })).pipe(Effect.scoped))

  it.live("read-then-write waits for another process's writer instead of failing with a stale snapshot", () =>
    Effect.gen(function*() {
      const other = yield* database.another
      yield* database.use(run(insert, { value: "shared" }))
      const [locked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const writer = yield* Effect.fork(Effect.provideService(
        transaction(Effect.gen(function*() {
          yield* all(bump, { value: "shared" })
          yield* Deferred.succeed(locked, undefined)
          yield* Deferred.await(go)
        })),
        Database,
        other
      ))
      yield* Deferred.await(locked)
      const waiting = yield* Effect.fork(database.use(transaction(Effect.gen(function*() {
        const [row] = yield* all(read, { value: "shared" })
        yield* all(bump, { value: "shared" })
        return row?.createdAt
      }))))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(writer)
      assert.strictEqual(yield* Fiber.join(waiting), 1, "it read what the other had committed")
    }).pipe(Effect.scoped))

  it.live("a single write waits for another process's writer too", () =>
    Effect.gen(function*() {
      const other = yield* database.another
      const [locked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const writer = yield* Effect.fork(Effect.provideService(
        transaction(Effect.zipRight(Deferred.succeed(locked, undefined), Deferred.await(go))),
        Database,
        other
      ))
      yield* Deferred.await(locked)
      const waiting = yield* Effect.fork(database.use(run(insert, { value: "single" })))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(writer)
      yield* Fiber.join(waiting)
      assert.strictEqual(yield* database.use(total), 1)
    }).pipe(Effect.scoped))

  it.live("a statement outside waits for the open transaction of this process and is no part of it", () =>
    database.use(Effect.gen(function*() {
      const [begun, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const doomed = yield* Effect.fork(Effect.exit(transaction(Effect.gen(function*() {
        yield* Deferred.succeed(begun, undefined)
        yield* Deferred.await(go)
        return yield* Effect.fail("rolled back")
      }))))
      yield* Deferred.await(begun)
      const outside = yield* Effect.fork(run(insert, { value: "outside" }))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(doomed)
      yield* Fiber.join(outside)
      assert.strictEqual(yield* total, 1)
    })))

  it.effect("a statement that waits for another process never slips into a transaction begun meanwhile", () =>
    database.use(Effect.gen(function*() {
      const other = yield* database.another
      const [locked, go] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const writer = yield* Effect.fork(Effect.provideService(
        transaction(Effect.zipRight(Deferred.succeed(locked, undefined), Deferred.await(go))),
        Database,
        other
      ))
      yield* Deferred.await(locked)
      const [begun, fail] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const single = yield* Effect.fork(run(insert, { value: "acknowledged" })) // busy, and again in 25 ms
      yield* TestClock.adjust(10)
      const doomed = yield* Effect.fork(Effect.exit(transaction(Effect.gen(function*() { // busy, and again at 35 ms
        yield* Deferred.succeed(begun, undefined)
        yield* Deferred.await(fail)
        return yield* Effect.fail("rolled back")
      }))))
      yield* TestClock.adjust(20)
      yield* Deferred.succeed(go, undefined)
      yield* Fiber.join(writer)
      yield* TestClock.adjust(5)
      yield* TestClock.adjust(100)
      yield* Deferred.await(begun)
      yield* Deferred.succeed(fail, undefined)
      yield* Fiber.join(doomed)
      yield* Fiber.join(single)
      assert.strictEqual(yield* total, 1)
    })).pipe(Effect.scoped))

  it.scopedLive("the file is made with mode 0600, whatever the umask", () =>
    Effect.gen(function*() {
      const path = join(freshDirectory(), "new.db")
      const before = process.umask(0)
      yield* Effect.ensuring(openDriver(`sqlite://${path}`), Effect.sync(() => process.umask(before)))
      assert.strictEqual(statSync(path).mode & 0o777, 0o600)
    }))

  it.live("foreign keys, WAL and a short busy timeout are in force on every opening", () =>
    Effect.gen(function*() {
      for (const driver of [database.driver(), yield* database.another]) {
        const pragma = (name: string) => Effect.provideService(sql(`PRAGMA ${name}`), Database, driver)
        assert.deepStrictEqual(yield* pragma("foreign_keys"), [{ foreign_keys: 1 }])
        assert.deepStrictEqual(yield* pragma("journal_mode"), [{ journal_mode: "wal" }])
        assert.deepStrictEqual(yield* pragma("synchronous"), [{ synchronous: 1 }])
        const [busy] = yield* pragma("busy_timeout")
        assert.isAtMost(Number(busy?.timeout), 250, "the driver's own wait blocks the event loop")
      }
    }).pipe(Effect.scoped))

  it.live("a path that cannot be opened is a failure, no defect", () =>
    Effect.gen(function*() {
      const exit = yield* Effect.exit(Effect.scoped(openDriver("sqlite:///no/such/folder/x.db")))
      assert.isTrue(Exit.isFailure(exit))
    }))
})
