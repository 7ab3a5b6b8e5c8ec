import { it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { afterEach, assert, describe, vi } from "vitest"
import { currentPeer } from "../../../src/engine/net/FairSemaphore.ts"
import { peerOf } from "../../../src/engine/net/Peer.ts"
import type { Peer } from "../../../src/engine/net/Peer.ts"
import { connectionOf, makeClient, send, withTimeLimit } from "../../../src/engine/sql/PostgresClient.ts"
import type { PostgresClient } from "../../../src/engine/sql/PostgresClient.ts"
import type { KeptFor, Lent } from "../../../src/engine/sql/PostgresPool.ts"
import { keptFor, Pool } from "../../../src/engine/sql/PostgresPool.ts"
import { vital } from "../../../src/engine/sql/Vital.ts"
import { freshPostgresUrl } from "../../support/Databases.ts"
import { openDriver } from "../../support/OpenDatabase.ts"
import { patienceMs } from "../../support/Patience.ts"

const poolOf = (url: string, kept: Partial<KeptFor>, idleMillis = Infinity): Pool =>
  new Pool({
    max: 3,
    acquireMillis: patienceMs,
    connect: async () => {
      const client = makeClient({ connectionString: url }, true)
      await (client.connect() as Promise<unknown>)
      client.idleMillis = idleMillis
      return client
    },
    keptFor: { ...keptFor, ...kept }
  })

const lend = (pool: Pool, peer?: Peer): Promise<Lent> =>
  new Promise((resolve, reject) =>
    pool.lend((lent) => Exit.isSuccess(lent) ? resolve(lent.value) : reject(new Error(String(lent.cause))), { peer })
  )

const sessionOf = (client: PostgresClient): Promise<unknown> =>
  new Promise((resolve, reject) =>
    send(
      client,
      "SELECT pg_backend_pid() AS pid",
      [],
      (result) => Exit.isSuccess(result) ? resolve(result.value.rows[0]?.pid) : reject(new Error(String(result.cause)))
    )
  )

const useOnce = async (pool: Pool): Promise<unknown> => {
  const { client, giveBack } = await lend(pool)
  const session = await sessionOf(client)
  giveBack()
  return session
}

describe("a pool of connections to PostgreSQL", () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  it("closes connections that have been idle for a long time, except the last one", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] })
    const pool = poolOf(await freshPostgresUrl(), { idle: 0 })
    const lent = await Promise.all([lend(pool), lend(pool), lend(pool)])
    for (const { giveBack } of lent) giveBack()
    assert.deepStrictEqual(pool.counts(), { idle: 3, busy: 0 })
    vi.advanceTimersByTime(keptFor.sweep)
    assert.deepStrictEqual(pool.counts(), { idle: 1, busy: 0 })
    const sessions = new Set<unknown>()
    for (let nth = 0; nth < 20; nth++) {
      vi.advanceTimersByTime(keptFor.sweep)
      sessions.add(await useOnce(pool))
    }
    assert.strictEqual(sessions.size, 1)
    await pool.end()
  })

  it("keeps no connection longer than its maximum age, whether it is used or not", async () => {
    vi.useFakeTimers({ toFake: ["setInterval"] })
    const pool = poolOf(await freshPostgresUrl(), { life: 1 })
    const sessions = new Set<unknown>()
    for (let nth = 0; nth < 20; nth++) sessions.add(await useOnce(pool))
    assert.isAbove(sessions.size, 1)
    await pool.end()
    const idle = poolOf(await freshPostgresUrl(), { life: 200 })
    const { client, giveBack } = await lend(idle)
    giveBack()
    while (!client.isOver) {
      await new Promise(setImmediate)
      vi.advanceTimersByTime(keptFor.sweep)
    }
    assert.deepStrictEqual(idle.counts(), { idle: 0, busy: 0 })
    await idle.end()
  })

  it("does not use a connection that the server is about to end because it is idle", async () => {
    const pool = poolOf(await freshPostgresUrl(), {}, 0)
    const sessions = new Set([await useOnce(pool), await useOnce(pool)])
    assert.strictEqual(sessions.size, 2)
    await pool.end()
  })

  it("closes the idle connections too when the server no longer answers one", async () => {
    const pool = poolOf(await freshPostgresUrl(), {})
    const lent = await Promise.all([lend(pool), lend(pool), lend(pool)])
    let renewals = 0
    pool.onRenewal(() => renewals++)
    const [{ client, giveBack }, ...others] = lent
    for (const other of others) other.giveBack()
    assert.deepStrictEqual(pool.counts(), { idle: 2, busy: 1 })
    const asked = withTimeLimit(client, 50, connectionOf(client).executeRaw("SELECT pg_sleep(600)", []))
    assert.isTrue(Exit.isFailure(await Effect.runPromiseExit(asked)))
    giveBack()
    assert.deepStrictEqual(pool.counts(), { idle: 0, busy: 0 })
    assert.strictEqual(renewals, 1)
    await pool.end()
  })

  it("leaves a connection for another client, and lends to a newcomer before a client that has some", async () => {
    const pool = poolOf(await freshPostgresUrl(), {})
    const order: Array<string> = []
    const asked = (name: string, address: string): Promise<Lent> =>
      lend(pool, peerOf(address)).then((lent) => {
        order.push(name)
        return lent
      })
    const first = await asked("busy", "192.0.2.1")
    const second = await asked("busy", "192.0.2.1")
    const more = [asked("busy again", "192.0.2.1"), asked("busy again", "192.0.2.1")]
    const other = await asked("other", "198.51.100.1")
    const newcomer = asked("newcomer", "203.0.113.1")
    first.giveBack()
    const third = await newcomer
    for (const { giveBack } of [second, other, third]) giveBack()
    for (const { giveBack } of await Promise.all(more)) giveBack()
    assert.deepStrictEqual(order, ["busy", "busy", "other", "newcomer", "busy again", "busy again"])
    assert.strictEqual(pool.counts().busy, 0)
    await pool.end()
  })

  it("ends when every connection has been returned", async () => {
    const pool = poolOf(await freshPostgresUrl(), {})
    const { client, giveBack } = await lend(pool)
    const end = pool.end()
    await sessionOf(client)
    giveBack()
    await end
    assert.isTrue(client.isOver)
    const refused = await lend(pool).then(() => "lent", String)
    assert.include(refused, "the pool is closed")
  })
})

describe("a client whose transactions wait for each other", () => {
  it.live("leaves a connection for the statements and transactions of other clients", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(yield* Effect.promise(freshPostgresUrl), 3)
      const [begun, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const hold = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(over))
      const from = (address: string) => Effect.provideService(currentPeer, peerOf(address))
      const holding = yield* Effect.forkChild(
        Effect.all(
          Array.from({ length: 6 }, () => driver.transact(() => Effect.exit(hold))),
          { concurrency: "unbounded" }
        ).pipe(from("192.0.2.1"))
      )
      yield* Deferred.await(begun)
      const one = { text: "SELECT 1 AS one", order: [], reads: true }
      const alone = yield* from("203.0.113.1")(driver.single(one, []))
      const within = yield* from("203.0.113.2")(
        driver.transact((connection) => Effect.exit(connection.execute(one.text, [])))
      )
      assert.deepStrictEqual([alone, yield* within], [[{ one: 1 }], [{ one: 1 }]])
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holding)
    }).pipe(Effect.scoped))
})

describe("statements that wait for a lock of somebody else", () => {
  it.live("leave a connection for the signs of life of the process", () =>
    Effect.gen(function*() {
      const driver = yield* openDriver(yield* Effect.promise(freshPostgresUrl), 4)
      const [begun, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const hold = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(over))
      const holding = yield* Effect.forkChild(
        Effect.all(Array.from({ length: 8 }, () => driver.transact(() => Effect.exit(hold))), {
          concurrency: "unbounded"
        })
      )
      yield* Deferred.await(begun)
      const found = yield* vital(driver.single({ text: "SELECT 1 AS one", order: [], reads: true }, []))
      assert.deepStrictEqual(found, [{ one: 1 }])
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(holding)
    }).pipe(Effect.scoped))
})
