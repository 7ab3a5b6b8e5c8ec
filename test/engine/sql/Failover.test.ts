import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Option, Redacted, Schedule } from "effect"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { int, text } from "../../../src/engine/sql/Column.ts"
import { Database, transaction } from "../../../src/engine/sql/Database.ts"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import * as Postgres from "../../../src/engine/sql/Postgres.ts"
import { all } from "../../../src/engine/sql/Query.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import { freshPostgresUrl } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { openDriver, sqlAt } from "../../support/OpenDatabase.ts"
import { freePort } from "../../support/Ports.ts"
import type { TwoServers } from "../../support/TwoServers.ts"
import { connectionsAt, readsOnly, startTwoServers, switchOver } from "../../support/TwoServers.ts"

/*
 * Tests a database with two servers, one of which follows the other. Connections must leave a server that has become
 * read-only.
 */

const untilNoneAt = (url: string) =>
  Effect.map(
    Effect.repeat(Effect.delay(Effect.promise(() => connectionsAt(url)), 20), {
      until: (count) => count === 0,
      times: 1000
    }),
    (left) => assert.strictEqual(left, 0)
  )

const single = (driver: Driver, text: string, params: ReadonlyArray<unknown> = []) =>
  driver.single({ text, order: [], reads: false }, params)

const named = statement({
  name: "test_named",
  params: { name: text() },
  row: { id: int },
  sql: () => `SELECT id AS "id" FROM things WHERE name = :name`
})

const insert = (driver: Driver, name: string) => single(driver, "INSERT INTO things VALUES ($1)", [name])

/** Writes until a write is refused, because a session notices a changed setting only between two statements. */
const untilRefused = (driver: Driver) =>
  Effect.repeat(Effect.exit(insert(driver, "refused")), { until: Exit.isFailure })

/** Opens `count` connections of the pool, so that they are idle afterwards. */
const warm = (driver: Driver, count: number) =>
  Effect.gen(function*() {
    const here = yield* Deferred.make<void>()
    let arrived = 0
    const one = driver.exclusive(() =>
      Effect.andThen(
        Effect.suspend(() => ++arrived === count ? Deferred.succeed(here, undefined) : Effect.void),
        Deferred.await(here)
      )
    )
    yield* Effect.all(Array.from({ length: count }, () => one), { concurrency: "unbounded" })
    assert.strictEqual(driver.connections().idle, count)
  })

describe("an address that moves to another server while the old server stays read-only", () => {
  let servers: TwoServers

  beforeAll(async () => {
    servers = await startTwoServers()
    await sqlAt(servers.at.primary, "CREATE TABLE things (name text)")
  })

  afterAll(() => servers?.dispose())

  it.live("leaves no connection at the old server after one refused write", () =>
    Effect.gen(function*() {
      const { address, at, follower, url } = servers
      const driver = yield* openDriver(url, 5)
      yield* warm(driver, 4)
      const heard: Array<string> = []
      let listening = yield* Deferred.make<void>()
      const listen = driver.listen ?? assert.fail("nobody listens")
      const ear = {
        heard: (payload: string) => void heard.push(payload),
        listening: Effect.suspend(() => Deferred.succeed(listening, undefined))
      }
      yield* Effect.forkChild(Effect.retry(listen("things", ear), Schedule.spaced(20)))
      yield* Deferred.await(listening)
      listening = yield* Deferred.make<void>()
      // One connection is in use while the servers change.
      const [begun, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = yield* Effect.forkChild(
        driver.exclusive((connection) =>
          Effect.andThen(
            connection.execute("SELECT 1", []),
            Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(over))
          )
        )
      )
      yield* Deferred.await(begun)

      yield* Effect.promise(() => switchOver(servers))
      address.target = follower.port
      const refused = yield* untilRefused(driver)
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holding)
      const told = Exit.isFailure(refused) ? Option.map(Exit.findErrorOption(refused), driver.describe) : Option.none()
      assert.match(Option.match(told, { onNone: () => "", onSome: ({ detail }) => detail }), /^25006 /)
      yield* Effect.all(Array.from({ length: 8 }, (_, nth) => insert(driver, `${nth}`)), { concurrency: 8 })
      yield* untilNoneAt(at.primary)

      yield* Deferred.await(listening)
      yield* single(driver, "NOTIFY things, 'told'")
      yield* Effect.repeat(Effect.delay(Effect.sync(() => heard.length), 20), { until: (count) => count > 0 })
      const rows = yield* Effect.promise(() => sqlAt(at.follower, "SELECT name FROM things WHERE name <> 'refused'"))
      assert.lengthOf(rows, 8)
    }).pipe(Effect.scoped))

  it.live("is reported when its server accepts no writes, and when the server accepts them again", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const { follower } = servers.at
      const driver = yield* openDriver(follower, 2)
      yield* insert(driver, "refused")
      assert.isFalse(driver.isReadOnly())
      for (const statement of readsOnly) yield* Effect.promise(() => sqlAt(follower, statement))
      yield* untilRefused(driver)
      assert.isTrue(driver.isReadOnly())
      yield* single(driver, "SELECT 1")
      for (const statement of ["ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()"]) {
        yield* Effect.promise(() => sqlAt(follower, statement))
      }
      // A connection that only reads also notices that the server accepts no writes.
      const read = Effect.map(single(driver, "SELECT 1"), () => driver.isReadOnly())
      yield* Effect.repeat(Effect.delay(read, 20), { while: (readOnly) => readOnly })
      yield* insert(driver, "refused")
      assert.deepStrictEqual(eventsOf(records), ["db_read_only", "db_read_only_ended"])
    }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
  })

  it.live("closes the idle sessions too when an administrator ends one session", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(servers.at.follower, 5)
      yield* warm(driver, 4)
      const one = yield* single(driver, "SELECT pg_backend_pid() AS pid")
      yield* Effect.promise(() => sqlAt(servers.at.follower, `SELECT pg_terminate_backend(${String(one[0]?.["pid"])})`))
      yield* untilNoneAt(servers.at.follower)
      assert.deepStrictEqual(driver.connections(), { idle: 0, busy: 0 })
      yield* insert(driver, "after")
    }).pipe(Effect.scoped))
})

describe("a URL that names several servers", () => {
  let servers: TwoServers

  beforeAll(async () => {
    servers = await startTwoServers()
    await sqlAt(servers.at.primary, "CREATE TABLE things (name text)")
  })

  afterAll(() => servers?.dispose())

  const urlOf = (ports: ReadonlyArray<number>, attributes?: string): string => {
    const query = attributes === undefined ? "" : `?target_session_attrs=${attributes}`
    const one = new URL(servers.at.primary)
    return one.href.replace(one.host, ports.map((port) => `127.0.0.1:${port}`).join(",")) + query
  }

  const portSeen = (driver: Driver) =>
    Effect.map(single(driver, "SELECT inet_server_port() AS port"), ([row]) => row?.["port"])

  const connectedTo = (ports: ReadonlyArray<number>, attributes?: string) =>
    Effect.scoped(Effect.flatMap(openDriver(urlOf(ports, attributes), 2), portSeen))

  it.live("connects to the first suitable server", () =>
    Effect.gen(function*() {
      const { follower, primary } = servers
      const dead = yield* Effect.promise(freePort)
      const [first, second] = [primary.port, follower.port]
      assert.strictEqual(yield* connectedTo([first, second]), first)
      assert.strictEqual(yield* connectedTo([dead, second, first]), first)
      assert.strictEqual(yield* connectedTo([second, first], "primary"), first)
      assert.strictEqual(yield* connectedTo([first, second], "standby"), second)
      assert.strictEqual(yield* connectedTo([dead, second, first], "any"), second)
      assert.strictEqual(yield* connectedTo([second]), second)
    }))

  it.live("causes a message with the reason for each server when no connection was made in time", () =>
    Effect.gen(function*() {
      const dead = yield* Effect.promise(freePort)
      const layer = Postgres.layer({
        url: Redacted.make(urlOf([dead, servers.follower.port])),
        pool_max: 1,
        acquire_timeout_ms: 1000
      })
      const { cause } = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      assert.match(
        String(cause),
        new RegExp(
          `no connection within 1000 ms .*127.0.0.1:${dead}: .*ECONNREFUSED.*; 127.0.0.1:${servers.follower.port}: the server is read-only.*`
        )
      )
    }))

  it.live("makes the driver move to a suitable server without a restart", () =>
    Effect.gen(function*() {
      const { address, at, follower, primary } = servers
      const driver = yield* openDriver(urlOf([primary.port, address.port]), 3)
      yield* warm(driver, 3)
      yield* insert(driver, "before")
      address.target = follower.port
      yield* Effect.promise(() => sqlAt(at.primary, "ALTER SYSTEM SET synchronous_standby_names = ''"))
      for (const statement of readsOnly) yield* Effect.promise(() => sqlAt(at.primary, statement))
      yield* untilRefused(driver)
      // Neither server accepts writes. The address shows when the follower has been asked.
      const asked = yield* Deferred.make<void>()
      address.judge = () => {
        Deferred.doneUnsafe(asked, Effect.void)
        return "pass"
      }
      const waiting = yield* Effect.forkChild(insert(driver, "after"))
      yield* Deferred.await(asked)
      yield* Effect.promise(() => follower.promote())
      yield* Fiber.join(waiting)
      assert.strictEqual(yield* portSeen(driver), follower.port)
      yield* untilNoneAt(at.primary)
      const rows = yield* Effect.promise(() =>
        sqlAt(at.follower, "SELECT name FROM things WHERE name <> 'refused' ORDER BY name")
      )
      assert.deepStrictEqual(rows, [{ name: "after" }, { name: "before" }])
    }).pipe(Effect.scoped))
})

describe("statements that the sessions of a pool have prepared", () => {
  const cases = [
    ["a column of their table got another type", "ALTER TABLE things ALTER COLUMN id TYPE bigint"],
    ["a proxy has reset the sessions", undefined]
  ] as const

  it.live.each(cases)("are prepared again after %s", ([, change]) =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(freshPostgresUrl)
      yield* Effect.promise(() => sqlAt(url, "CREATE TABLE things AS SELECT 1 AS id, 'one' AS name"))
      const driver = yield* openDriver(url, 3)
      const alone = Effect.provideService(all(named, { name: "one" }), Database, driver)
      const within = Effect.provideService(transaction(all(named, { name: "one" })), Database, driver)
      const every = Effect.all([alone, alone, alone, within, within, within], { concurrency: "unbounded" })
      yield* every
      if (change === undefined) {
        const reset = driver.exclusive((connection) => connection.executeRaw("DEALLOCATE ALL", []))
        yield* Effect.all([reset, reset, reset], { concurrency: "unbounded" })
      } else yield* Effect.promise(() => sqlAt(url, change))
      for (const rows of yield* every) assert.lengthOf(rows, 1)
    }).pipe(Effect.scoped))
})
