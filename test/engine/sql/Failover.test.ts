import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import { afterAll, assert, beforeAll, describe } from "vitest"
import type { Driver } from "../../../src/engine/sql/Driver.ts"
import type { Forwarder } from "../../support/Forwarder.ts"
import { startForwarder, through } from "../../support/Forwarder.ts"
import { openDriver, sqlAt } from "../../support/OpenDatabase.ts"
import type { PostgresCluster, PostgresFollower } from "../../support/Postgres.ts"
import { startPostgres } from "../../support/Postgres.ts"

/* Two servers, one of which follows the other: connections leave the one that has become read-only. */

const portOf = (url: string, port: number): string => through(url, { port })

const readsOnly = ["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"]

/** One server that takes writes, one that follows it, and an address that leads to the first. */
interface Servers {
  readonly primary: PostgresCluster
  readonly follower: PostgresFollower
  readonly address: Forwarder
  /** The database through the address. */
  readonly url: string
  /** The database at each server. */
  readonly at: { readonly primary: string; readonly follower: string }
  readonly dispose: () => Promise<void>
}

const startServers = async (): Promise<Servers> => {
  const primary = await startPostgres({ followed: true })
  const database = await primary.createDatabase()
  await sqlAt(database, "CREATE TABLE things (name text)")
  const follower = await primary.follower()
  const address = await startForwarder(primary.port)
  return {
    primary,
    follower,
    address,
    url: through(database, address),
    at: { primary: database, follower: portOf(database, follower.port) },
    dispose: async () => {
      await address.stop()
      await follower.stop()
      await primary.stop()
    }
  }
}

/** Makes the first server read-only and the second one take writes. No connection is cut. */
const switchOver = async ({ at, follower }: Servers): Promise<void> => {
  await sqlAt(at.primary, "ALTER SYSTEM SET synchronous_standby_names = ''")
  for (const statement of readsOnly) await sqlAt(at.primary, statement)
  await follower.promote()
}

/** How many of the service's connections a server has. */
const connectionsAt = async (url: string): Promise<number> => {
  const rows = await sqlAt(
    url,
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
  )
  return rows.length
}

const untilNoneAt = (url: string) =>
  Effect.repeat(Effect.delay(Effect.promise(() => connectionsAt(url)), 20), { until: (count) => count === 0 })

const single = (driver: Driver, text: string, params: ReadonlyArray<unknown> = []) =>
  driver.single({ text, order: [], reads: false }, params)

const insert = (driver: Driver, name: string) => single(driver, "INSERT INTO things VALUES ($1)", [name])

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

describe("an address that leads to another server, while the former stays and is read-only", () => {
  let servers: Servers

  beforeAll(async () => {
    servers = await startServers()
  })

  afterAll(() => servers?.dispose())

  it.live("costs one refused write, and no connection stays with the former", () =>
    Effect.gen(function*() {
      const { address, at, follower, url } = servers
      const driver = yield* openDriver(url, 4)
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
      // One connection is lent while the servers change.
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
      const refused = yield* Effect.flip(insert(driver, "refused"))
      assert.match(driver.describe(refused).detail, /^25006 /)
      yield* Effect.all(Array.from({ length: 8 }, (_, nth) => insert(driver, `${nth}`)), { concurrency: 8 })
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holding)
      yield* untilNoneAt(at.primary)

      yield* Deferred.await(listening)
      yield* single(driver, "NOTIFY things, 'told'")
      yield* Effect.repeat(Effect.delay(Effect.sync(() => heard.length), 20), { until: (count) => count > 0 })
      const rows = yield* Effect.promise(() => sqlAt(at.follower, "SELECT name FROM things"))
      assert.lengthOf(rows, 8)
    }).pipe(Effect.scoped))

  it.live("a session that an administrator ends takes the idle ones with it", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(servers.at.follower, 4)
      yield* warm(driver, 4)
      const one = yield* single(driver, "SELECT pg_backend_pid() AS pid")
      yield* Effect.promise(() => sqlAt(servers.at.follower, `SELECT pg_terminate_backend(${String(one[0]?.["pid"])})`))
      yield* untilNoneAt(servers.at.follower)
      assert.deepStrictEqual(driver.connections(), { idle: 0, busy: 0 })
      yield* insert(driver, "after")
    }).pipe(Effect.scoped))
})
