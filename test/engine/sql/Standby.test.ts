import { it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Redacted } from "effect"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { int } from "../../../src/engine/sql/Column.ts"
import { aside, Database, transaction } from "../../../src/engine/sql/Database.ts"
import type { Driver, Position } from "../../../src/engine/sql/Driver.ts"
import { allowance, atPrimary, mayLag } from "../../../src/engine/sql/Lag.ts"
import * as Postgres from "../../../src/engine/sql/Postgres.ts"
import type { PostgresOptions } from "../../../src/engine/sql/PostgresServer.ts"
import { lagOf } from "../../../src/engine/sql/PostgresStandby.ts"
import { first, run } from "../../../src/engine/sql/Query.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { freshPostgresUrl } from "../../support/Databases.ts"
import type { Forwarder } from "../../support/Forwarder.ts"
import { startForwarder, through } from "../../support/Forwarder.ts"
import { eventsOf } from "../../support/Graph.ts"
import { sqlAt } from "../../support/OpenDatabase.ts"
import type { TwoServers } from "../../support/TwoServers.ts"
import { connectionsAt, startTwoServers } from "../../support/TwoServers.ts"

/* Reads that may lack the last changes go to a standby, and to the primary if the standby cannot answer. */

const seen = statement({
  name: "things_seen",
  params: {},
  row: { standby: int, count: int },
  sql: () => `SELECT pg_is_in_recovery()::int AS "standby", (SELECT count(*) FROM things) AS "count"`
})

/** The same read, which takes a long time on a standby. */
const slowlySeen = statement({
  name: "things_slowly_seen",
  params: {},
  row: seen.row,
  sql: () =>
    `SELECT pg_is_in_recovery()::int AS "standby", (SELECT count(*) FROM things) AS "count"
     FROM pg_sleep(CASE WHEN pg_is_in_recovery() THEN 600 ELSE 0 END)`
})

const marked = statement({
  name: "things_marked",
  params: {},
  row: { count: int },
  sql: () => `SELECT count(*) AS "count" FROM marks`
})

const added = statement({ name: "things_added", params: {}, row: {}, sql: () => `INSERT INTO things VALUES ('one')` })

const see = Effect.map(first(seen, {}), (row) => row ?? { standby: -1, count: -1 })
const changes = Effect.succeed(Effect.map(first(marked, {}), (row) => row?.count ?? 0))

const position: Position = {
  database: "7/16384",
  timeline: 1,
  isStandby: false,
  server: "1000.5",
  log: 500,
  now: 2000,
  replayed: null
}
const following: Position = { ...position, isStandby: true, server: "1001.5", replayed: 1999 }

describe("the lag of a server", () => {
  const detail = (at: Position) => {
    const lag = lagOf(position, at, 30)
    return typeof lag === "number" ? lag : `${lag.outcome}: ${lag.detail}`
  }

  it("is zero while the server has the whole log, however long ago the last commit was", () =>
    assert.strictEqual(detail({ ...following, replayed: 3 }), 0))

  it("is the age of the last commit that the server has, by the clock of the primary", () =>
    assert.strictEqual(detail({ ...following, log: 499, replayed: 1990, now: 5 }), 10))

  it("is never negative", () => assert.strictEqual(detail({ ...following, log: 499, replayed: 2001 }), 0))

  it("is too long beyond the limit, and unknown before the first commit", () => {
    assert.match(String(detail({ ...following, log: 499, replayed: 1969.9 })), /^behind: it is 30 s behind/)
    assert.match(String(detail({ ...following, log: 499, replayed: null })), /^behind: it has replayed no/)
  })

  it("is not computed for another database, for another timeline, or for a server that follows no other", () => {
    assert.match(String(detail({ ...following, database: "7/16385" })), /^foreign: it is no copy/)
    assert.match(String(detail({ ...following, timeline: 2 })), /^foreign: its timeline is 2/)
    assert.match(String(detail({ ...following, isStandby: false })), /^foreign: it follows no server/)
  })

  it("is zero at the primary itself", () => assert.strictEqual(detail({ ...position, log: 400 }), 0))
})

describe("reads of a standby", () => {
  let servers: TwoServers
  let way: Forwarder

  beforeAll(async () => {
    servers = await startTwoServers()
    way = await startForwarder(servers.follower.port)
    for (const table of ["things", "marks"]) await sqlAt(servers.at.primary, `CREATE TABLE ${table} (name text)`)
  })

  afterAll(async () => {
    await way?.stop()
    await servers?.dispose()
  })

  const opened = (more: Partial<PostgresOptions> = {}) =>
    Effect.orDie(Effect.map(
      Layer.build(
        Postgres.layer({
          url: Redacted.make(servers.at.primary),
          pool_max: 4,
          acquire_timeout_ms: 5000,
          isServing: true,
          read_url: Redacted.make(through(servers.at.follower, way)),
          read_max_lag_seconds: 300,
          ...more
        })
      ),
      Context.get(Database)
    ))

  const at = (driver: Driver) => <A, E>(self: Effect.Effect<A, E, Database>) =>
    Effect.orDie(Effect.provideService(self, Database, driver))

  const lagging = mayLag(aside(see), changes)

  const until = (driver: Driver, standby: number) =>
    Effect.repeat(Effect.delay(at(driver)(lagging), 20), { until: ([row]) => row.standby === standby })

  const onPrimary = (text: string) => Effect.promise(() => sqlAt(servers.at.primary, text))
  const onFollower = (text: string) => Effect.promise(() => sqlAt(servers.at.follower, text))

  /** Stops the replay on the standby while an effect runs. */
  const paused = <A, E, R>(self: Effect.Effect<A, E, R>) =>
    Effect.acquireUseRelease(
      Effect.andThen(
        onFollower("SELECT pg_wal_replay_pause()"),
        Effect.repeat(Effect.delay(onFollower("SELECT pg_get_wal_replay_pause_state() AS state"), 20), {
          until: ([row]) => row?.["state"] === "paused"
        })
      ),
      () => self,
      () => onFollower("SELECT pg_wal_replay_resume()")
    )

  it.live("are only those reads of lists and records that may lag", () =>
    Effect.gen(function*() {
      const driver = yield* opened()
      const here = at(driver)
      assert.strictEqual((yield* here(aside(see))).standby, 0)
      assert.deepStrictEqual(driver.standby?.state(), { state: "untried" })
      assert.strictEqual((yield* here(see)).standby, 0)
      const [list, lag] = yield* until(driver, 1)
      assert.strictEqual(list.standby, 1)
      assert.isDefined(lag)
      assert.strictEqual((yield* here(mayLag(see, changes)))[0].standby, 1)
      assert.strictEqual((yield* here(mayLag(atPrimary(see), changes)))[0].standby, 0)
      assert.strictEqual((yield* here(mayLag(transaction(see), changes)))[0].standby, 0)
      const [written] = yield* here(mayLag(Effect.andThen(run(added, {}), transaction(see)), changes))
      assert.deepStrictEqual(written, { standby: 0, count: list.count + 1 })
      const [inside] = yield* here(transaction(mayLag(see, changes)))
      assert.strictEqual(inside.standby, 0)
    }).pipe(Effect.scoped))

  it.live("are made only by a process that serves", () =>
    Effect.gen(function*() {
      const driver = yield* opened({ isServing: false })
      assert.isUndefined(driver.standby)
      const [row, lag] = yield* at(driver)(lagging)
      assert.deepStrictEqual([row.standby, lag], [0, undefined])
    }).pipe(Effect.scoped))

  it.live("go to the primary while the standby lacks a change", () =>
    Effect.gen(function*() {
      const driver = yield* opened()
      yield* until(driver, 1)
      const [before] = yield* at(driver)(lagging)
      yield* paused(Effect.gen(function*() {
        yield* onPrimary("INSERT INTO things VALUES ('two')")
        const [row, lag] = yield* at(driver)(lagging)
        assert.deepStrictEqual(row, before)
        assert.isAbove(lag ?? 0, 0)
        assert.deepStrictEqual(driver.standby?.state(), { state: "answers", lagMs: Math.ceil((lag ?? 0) * 1000) })
        yield* onPrimary("INSERT INTO marks VALUES ('a change')")
        assert.deepStrictEqual(yield* at(driver)(lagging), [{ standby: 0, count: before.count + 1 }, undefined])
        const [record] = yield* at(driver)(mayLag(see, changes))
        assert.deepStrictEqual(record, { standby: 0, count: before.count + 1 })
      }))
      const [after] = yield* until(driver, 1)
      assert.strictEqual(after.count, before.count + 1)
    }).pipe(Effect.scoped))

  it.live("may be made after the lag was returned, and then lag no more than the returned time", () =>
    Effect.gen(function*() {
      const driver = yield* opened()
      yield* until(driver, 1)
      const later = Effect.map(Effect.context<Database>(), (context) => Effect.provideContext(see, context))
      const [unread, none] = yield* at(driver)(mayLag(later, changes))
      assert.deepStrictEqual([(yield* at(driver)(unread)).standby, none], [0, undefined])
      const [read, lag] = yield* at(driver)(mayLag(Effect.andThen(see, later), changes))
      assert.strictEqual((yield* at(driver)(read)).standby, 1)
      assert.isDefined(lag)
      const { standby } = driver
      if (standby === undefined) return assert.fail("no standby")
      yield* paused(Effect.gen(function*() {
        yield* onPrimary("INSERT INTO things VALUES ('later')")
        const primary = yield* Effect.orDie(standby.primary)
        const count = yield* changes
        const within = (mostSeconds: number) =>
          Effect.provideService(see, allowance, {
            primary,
            changes: count,
            known: 0,
            note: () => {},
            mostSeconds: () => mostSeconds
          })
        assert.strictEqual((yield* at(standby.driver)(within(300))).standby, 1)
        assert.strictEqual((yield* at(standby.driver)(within(0))).standby, 0)
        assert.strictEqual(standby.state().state, "answers")
      }))
    }).pipe(Effect.scoped))

  it.live("are repeated at the primary if they fail", () =>
    Effect.gen(function*() {
      const driver = yield* opened()
      const [{ count }] = yield* until(driver, 1)
      const found = Effect.filterOrFail(aside(see), (row) => row.count > count, () => "not there" as const)
      yield* paused(Effect.gen(function*() {
        yield* onPrimary("INSERT INTO things VALUES ('three')")
        assert.deepStrictEqual(yield* at(driver)(mayLag(found, changes)), [{ standby: 0, count: count + 1 }, undefined])
      }))
    }).pipe(Effect.scoped))

  it.live("go to the primary while the standby is too far behind", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const driver = yield* opened({ read_max_lag_seconds: 1 })
      yield* until(driver, 1)
      yield* paused(Effect.gen(function*() {
        yield* onPrimary("INSERT INTO things VALUES ('four')")
        yield* until(driver, 0)
        assert.deepStrictEqual(driver.standby?.state(), { state: "behind" })
      }))
      yield* until(driver, 1)
      assert.strictEqual(driver.standby?.state().state, "answers")
      const [left] = records.filter(({ event }) => event === "db_standby_left")
      assert.strictEqual(left?.fields["reason"], "behind")
      assert.match(String(left?.fields["error"]), /s behind, and database.read_max_lag_seconds is 1/)
      assert.deepStrictEqual(eventsOf(records), ["db_standby_left", "db_standby_used"])
    }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
  })

  it.live("go to the primary while the standby cannot be reached", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const driver = yield* opened()
      yield* until(driver, 1)
      way.target = 1
      yield* onFollower(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
      )
      yield* Effect.repeat(Effect.delay(Effect.promise(() => connectionsAt(servers.at.follower)), 20), {
        until: (count) => count === 0
      })
      const [row, lag] = yield* at(driver)(lagging)
      assert.deepStrictEqual([row.standby, lag], [0, undefined])
      way.target = servers.follower.port
      yield* until(driver, 1)
      assert.deepStrictEqual(eventsOf(records), ["db_standby_left", "db_standby_used"])
    }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
  })

  it.live("go to the primary if their connection breaks", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const driver = yield* opened()
      yield* until(driver, 1)
      const resets = way.resets()
      way.judge = (sent) => {
        if (!sent.includes("BEGIN ISOLATION LEVEL")) return "pass"
        way.judge = undefined
        return "reset before"
      }
      const [broken, lag] = yield* at(driver)(lagging)
      assert.deepStrictEqual([broken.standby, lag, way.resets() - resets], [0, undefined, 1])
      const [next] = yield* at(driver)(lagging)
      assert.strictEqual(next.standby, 1)
      assert.deepStrictEqual(eventsOf(records), [])
    }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
  })

  it.live("go to the primary if the standby accepts statements and does not answer them", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const driver = yield* opened()
      yield* until(driver, 1)
      way.judge = (sent) => sent.includes("BEGIN ISOLATION LEVEL") ? "drop" : "pass"
      const [frozen, lag] = yield* at(driver)(lagging)
      assert.deepStrictEqual([frozen.standby, lag], [0, undefined])
      assert.deepStrictEqual(eventsOf(records), ["db_standby_left"])
      way.judge = undefined
      yield* until(driver, 1)
    }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
  })

  const twice = Effect.andThen(see, Effect.repeat(Effect.delay(see, 20), { until: ({ standby }) => standby === 0 }))

  for (
    const [what, read] of [["a running read", first(slowlySeen, {})], [
      "a transaction between two reads",
      twice
    ]] as const
  ) {
    it.live(`go to the primary if the standby ends ${what} because of its replay`, () => {
      const records: Array<Record> = []
      return Effect.gen(function*() {
        for (const text of ["ALTER SYSTEM SET max_standby_streaming_delay = 0", "SELECT pg_reload_conf()"]) {
          yield* onFollower(text)
        }
        yield* onPrimary("INSERT INTO things VALUES ('five')")
        const driver = yield* opened()
        yield* Effect.repeat(Effect.delay(at(driver)(lagging), 20), {
          until: ([{ count, standby }]) => standby === 1 && count > 0
        })
        const open = onFollower(
          "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND (state = 'idle in transaction' OR wait_event = 'PgSleep')"
        )
        const removing = Effect.repeat(Effect.delay(open, 20), { until: (rows) => rows.length > 0 }).pipe(
          Effect.andThen(onPrimary("DELETE FROM things")),
          Effect.andThen(onPrimary("VACUUM things"))
        )
        const [[row, lag]] = yield* Effect.all([at(driver)(mayLag(aside(read), changes)), removing], { concurrency: 2 })
        assert.deepStrictEqual([row, lag], [{ standby: 0, count: 0 }, undefined])
        yield* until(driver, 1)
        assert.deepStrictEqual(eventsOf(records), [])
      }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
    })
  }

  for (
    const [where, made] of [
      ["another server", freshPostgresUrl],
      ["the same server", () => servers.primary.createDatabase()]
    ] as const
  ) {
    it.live(`never return rows from another database of ${where}`, () => {
      const records: Array<Record> = []
      return Effect.gen(function*() {
        const other = yield* Effect.promise(made)
        for (const table of ["things", "marks"]) {
          yield* Effect.promise(() => sqlAt(other, `CREATE TABLE ${table} (name text)`))
        }
        yield* Effect.promise(() => sqlAt(other, "INSERT INTO things SELECT 'foreign' FROM generate_series(1, 1000)"))
        const driver = yield* opened({ read_url: Redacted.make(other) })
        const [row, lag] = yield* at(driver)(lagging)
        assert.deepStrictEqual([row.standby, row.count < 1000, lag], [0, true, undefined])
        const told = records.map(({ event, fields }) => [event, fields["reason"]])
        assert.deepStrictEqual(told, [["db_standby_left", "foreign"]])
      }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
    })
  }

  it.live("end when the standby is promoted, until the writes go to it too", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const driver = yield* opened()
      yield* until(driver, 1)
      yield* onPrimary("ALTER SYSTEM SET synchronous_standby_names = ''")
      yield* onPrimary("SELECT pg_reload_conf()")
      yield* Effect.promise(() => servers.follower.promote())
      yield* onFollower("INSERT INTO things SELECT 'elsewhere' FROM generate_series(1, 1000)")
      const [row, lag] = yield* at(driver)(lagging)
      assert.deepStrictEqual([row.count < 1000, lag], [true, undefined])
      assert.deepStrictEqual(driver.standby?.state(), { state: "foreign" })
      const [left] = records.filter(({ event }) => event === "db_standby_left")
      assert.match(
        String(left?.fields["error"]),
        /^its timeline is 2, and that of the server of database.url is 1/
      )
      const moved = yield* opened({ url: Redacted.make(servers.at.follower) })
      const [there, none] = yield* at(moved)(lagging)
      assert.deepStrictEqual([there.count >= 1000, none], [true, 0])
      assert.isTrue(Exit.isSuccess(yield* Effect.exit(at(moved)(run(added, {})))))
    }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
  })
})
