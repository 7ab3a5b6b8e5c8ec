import { it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Client } from "pg"
import { afterAll, assert, beforeAll, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import { isPassing } from "../../../src/engine/sql/PostgresServer.ts"
import { layerMemory } from "../../../src/engine/telemetry/EventLog.ts"
import type { Record } from "../../../src/engine/telemetry/EventLog.ts"
import type { Forwarder } from "../../support/Forwarder.ts"
import { startForwarder, through } from "../../support/Forwarder.ts"
import { eventsOf, openDriver, sql } from "../../support/Graph.ts"
import type { PostgresCluster } from "../../support/Postgres.ts"
import { startPostgres } from "../../support/Postgres.ts"

describe("a PostgreSQL server whose connections are taken by others", () => {
  let cluster: PostgresCluster
  let address: Forwarder
  const others: Array<Client> = []

  const take = async (): Promise<void> => {
    for (;;) {
      const client = new Client({ connectionString: cluster.adminUrl })
      client.on("error", () => {})
      try {
        await client.connect()
        others.push(client)
      } catch (error) {
        assert.strictEqual((error as { readonly code?: string }).code, "53300")
        return
      }
    }
  }

  const free = async (): Promise<void> => {
    await Promise.all(others.splice(0).map((client) => client.end()))
  }

  beforeAll(async () => {
    cluster = await startPostgres({ connections: 6 })
    address = await startForwarder(cluster.port)
  })

  afterAll(async () => {
    await free()
    await address?.stop()
    await cluster?.stop()
  })

  /** Completes after this many attempts to connect through the address. */
  const tried = (times: number) =>
    Effect.map(Deferred.make<void>(), (enough) => {
      let count = 0
      address.judge = () => {
        if (++count >= times) Deferred.doneUnsafe(enough, Effect.void)
        return "pass"
      }
      return Deferred.await(enough)
    })

  it.live("delays a request until a connection is free, even at startup", () =>
    Effect.gen(function*() {
      yield* Effect.promise(take)
      const asked = yield* tried(3)
      const opening = yield* Effect.forkChild(openDriver(through(cluster.adminUrl, address), 2))
      yield* asked
      yield* Effect.promise(free)
      const driver = yield* Fiber.join(opening)

      yield* Effect.promise(take)
      const [begun, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = yield* Effect.forkChild(
        driver.exclusive(() => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(over)))
      )
      yield* Deferred.await(begun)
      const again = yield* tried(3)
      const waiting = yield* Effect.forkChild(Effect.provideService(sql("SELECT 1 AS one"), Database, driver))
      yield* again
      yield* Effect.promise(free)
      assert.deepStrictEqual(yield* Fiber.join(waiting), [{ one: 1 }])
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holding)
    }).pipe(Effect.scoped))

  it.live("causes a failure when the time for a connection is over", () => {
    const records: Array<Record> = []
    return Effect.gen(function*() {
      const driver = yield* openDriver(through(cluster.adminUrl, address), 2, 1000)
      yield* Effect.promise(take)
      const [begun, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const holding = yield* Effect.forkChild(
        driver.exclusive(() => Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(over)))
      )
      yield* Deferred.await(begun)
      const late = yield* Effect.flip(driver.single({ text: "SELECT 1", order: [], reads: true }, []))
      const { cause, detail } = driver.describe(late)
      assert.match(detail, /^no connection within 1000 ms .*: 53300 .*lower database\.pool_max or raise/)
      assert.strictEqual(cause, "refused")
      assert.deepStrictEqual(eventsOf(records), ["db_pool_timeout"])
      const asked = yield* tried(1)
      const waiting = yield* Effect.forkChild(driver.single({ text: "SELECT 1 AS one", order: [], reads: true }, []))
      yield* Effect.raceFirst(asked, Fiber.join(waiting))
      yield* Deferred.succeed(over, undefined)
      assert.deepStrictEqual(yield* Fiber.join(waiting), [{ one: 1 }])
      yield* Fiber.join(holding)
      yield* Effect.promise(free)
    }).pipe(Effect.scoped, Effect.provide(layerMemory(records)))
  })

  it("is distinguished from failures that will not end by themselves", () => {
    const refusal = (code: string, message: string) => Object.assign(new Error(message), { code })
    assert.isTrue(isPassing(refusal("57P03", "the database system is starting up")))
    assert.isTrue(isPassing(refusal("08P01", "no more connections allowed (max_client_conn)")))
    assert.isTrue(isPassing(refusal("08P01", "query_wait_timeout")))
    assert.isFalse(isPassing(refusal("08P01", "unsupported startup parameter: statement_timeout")))
    assert.isFalse(isPassing(refusal("28P01", "password authentication failed for user \"x\"")))
    assert.isFalse(isPassing(refusal("ECONNREFUSED", "connect ECONNREFUSED")))
  })
})
