import { Effect } from "effect"
import { assert, describe } from "vitest"
import { OrderId } from "../../../src/domain/Id.ts"
import { Database, transaction } from "../../../src/engine/sql/Database.ts"
import * as upstreamOrders from "../../../src/store/upstream/UpstreamOrderRows.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, count, idLiteral, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* Tests the rows of orders at an upstream, and every condition in the statements that change these rows. */

const profile = profileOf(configOf())
const nobody = OrderId("01890000-0000-7000-8000-000000000000")
const csr = Buffer.from([0x30, 0x00, 0xff])
const client = { ip: "192.0.2.1", ptr: "host.example", user_agent: "test/1", request_id: "request-1" }

const statuses = ["processing", "valid", "invalid"] as const

describe.each(databases)("rows of upstream orders on $name", (backend) => {
  const { database, test } = useWorld(backend)

  const newOrder = Effect.flatMap(
    callerAt(profile),
    (caller) => Effect.map(orderOf(caller, "a.example"), ({ id }) => id)
  )

  /** An order with its upstream row, which is inserted at second 100. */
  const inserted = Effect.tap(newOrder, (orderId) => upstreamOrders.insert({ orderId, csr, client, now: 100 }))

  const at = (orderId: string) => `order_id = ${idLiteral(backend.dialect, orderId)}`
  const stamps = (orderId: string) =>
    Effect.map(
      sql(`SELECT status, error, started_at, created_at, updated_at FROM upstream_orders WHERE ${at(orderId)}`),
      ([row]) => ({
        status: row?.["status"],
        error: row?.["error"],
        started: row?.["started_at"] === null ? null : Number(row?.["started_at"]),
        times: [Number(row?.["created_at"]), Number(row?.["updated_at"])]
      })
    )
  const set = (orderId: string, status: string) =>
    sql(`UPDATE upstream_orders SET status = '${status}' WHERE ${at(orderId)}`)

  const opened = (orderId: OrderId, number: number, now: number) =>
    upstreamOrders.opened({
      orderId,
      orderUrl: `https://ca.example/order/${number}`,
      finalizeUrl: `https://ca.example/finalize/${number}`,
      now
    })

  test("begin as processing, with the CSR and the facts of the request, and without any data of the upstream", () =>
    Effect.gen(function*() {
      const orderId = yield* inserted
      const found = yield* upstreamOrders.find(orderId)
      assert.deepStrictEqual({ ...found, csr: Buffer.from(found?.csr ?? []) }, {
        status: "processing",
        orderUrl: undefined,
        finalizeUrl: undefined,
        certificateUrl: undefined,
        csr,
        clientIp: "192.0.2.1",
        clientPtr: "host.example",
        userAgent: "test/1",
        requestId: "request-1",
        startedAt: undefined,
        asks: 0,
        askedAt: undefined
      })
      assert.deepStrictEqual((yield* stamps(orderId)).times, [100, 100])
    }))

  test("have no facts of the request if the request had none", () =>
    Effect.gen(function*() {
      const orderId = yield* newOrder
      yield* upstreamOrders.insert({ orderId, csr, client: {}, now: 100 })
      const { clientIp, clientPtr, requestId, userAgent } = (yield* upstreamOrders.find(orderId)) ??
        assert.fail("no row")
      assert.deepStrictEqual([clientIp, clientPtr, userAgent, requestId], Array(4).fill(undefined))
    }))

  test("exist at most once for an existing order, and are deleted with the order", () =>
    Effect.gen(function*() {
      const orderId = yield* inserted
      const again = upstreamOrders.insert({ orderId, csr: Buffer.from("other"), client: {}, now: 200 })
      assert.strictEqual((yield* Effect.flip(transaction(again)))._tag, "StorageFailed")
      const orphan = upstreamOrders.insert({ orderId: nobody, csr, client, now: 100 })
      assert.strictEqual((yield* Effect.flip(transaction(orphan)))._tag, "StorageFailed")
      assert.isTrue(csr.equals(Buffer.from((yield* upstreamOrders.find(orderId))?.csr ?? [])))
      assert.isUndefined(yield* upstreamOrders.find(nobody))
      yield* sql("DELETE FROM orders")
      assert.strictEqual(yield* count("SELECT count(*) FROM upstream_orders"), 0)
    }))

  test("keep the start time of the first attempt, and do not start again after they have ended", () =>
    Effect.gen(function*() {
      const orderId = yield* inserted
      assert.strictEqual(yield* upstreamOrders.start(orderId, 110), 110)
      assert.strictEqual(yield* upstreamOrders.start(orderId, 170), 110)
      assert.deepInclude(yield* stamps(orderId), { started: 110, times: [100, 170] })
      assert.strictEqual((yield* upstreamOrders.find(orderId))?.startedAt, 110)
      assert.isUndefined(yield* upstreamOrders.start(nobody, 110))
      for (const status of ["valid", "invalid"]) {
        const other = yield* inserted
        yield* set(other, status)
        assert.isUndefined(yield* upstreamOrders.start(other, 110), status)
        assert.deepInclude(yield* stamps(other), { started: null, times: [100, 100] })
      }
    }))

  test("keep the first order that was opened at the upstream, and ignore later ones", () =>
    Effect.gen(function*() {
      const orderId = yield* inserted
      const other = yield* inserted
      assert.isTrue(yield* opened(orderId, 1, 120))
      assert.isFalse(yield* opened(orderId, 2, 130))
      assert.deepInclude(yield* upstreamOrders.find(orderId), {
        orderUrl: "https://ca.example/order/1",
        finalizeUrl: "https://ca.example/finalize/1"
      })
      assert.deepStrictEqual((yield* stamps(orderId)).times, [100, 120])
      assert.isUndefined((yield* upstreamOrders.find(other))?.orderUrl)
    }))

  test("count the requests for an upstream order until the URL of that order is known", () =>
    Effect.gen(function*() {
      const orderId = yield* inserted
      const asked = (asks: number, now: number) => upstreamOrders.asked({ orderId, asks, now })
      const kept = Effect.map(upstreamOrders.find(orderId), (row) => [row?.asks, row?.askedAt])
      yield* asked(1, 110)
      assert.deepStrictEqual(yield* kept, [1, 110])
      yield* asked(2, 120)
      assert.deepStrictEqual(yield* kept, [2, 120])
      yield* opened(orderId, 1, 130)
      yield* asked(3, 140)
      assert.deepStrictEqual(yield* kept, [2, 120])
      const ended = yield* inserted
      yield* set(ended, "invalid")
      yield* upstreamOrders.asked({ orderId: ended, asks: 1, now: 150 })
      assert.strictEqual((yield* upstreamOrders.find(ended))?.asks, 0)
    }))

  test("store the URL of an order even if the rest of the answer could not be read", () =>
    Effect.gen(function*() {
      const orderId = yield* inserted
      const orderUrl = "https://ca.example/order/1"
      assert.isTrue(yield* upstreamOrders.opened({ orderId, orderUrl, finalizeUrl: undefined, now: 120 }))
      assert.deepInclude(yield* upstreamOrders.find(orderId), { orderUrl, finalizeUrl: undefined })
    }))

  test("do not store an upstream order that another row has, unless that row has failed", () =>
    Effect.gen(function*() {
      for (const [index, status] of statuses.entries()) {
        if (status === "invalid") continue
        const [orderId, other] = [yield* inserted, yield* inserted]
        assert.isTrue(yield* opened(orderId, index, 120))
        yield* set(orderId, status)
        assert.isFalse(yield* opened(other, index, 130), status)
        assert.isUndefined((yield* upstreamOrders.find(other))?.orderUrl)
        assert.isTrue(yield* opened(other, index + 10, 140))
      }
      // After a failure, the upstream returns the unfinished order to the next equal request.
      const [failed, next] = [yield* inserted, yield* inserted]
      assert.isTrue(yield* opened(failed, 30, 120))
      yield* set(failed, "invalid")
      assert.isTrue(yield* opened(next, 30, 130))
      assert.isUndefined((yield* upstreamOrders.find(failed))?.orderUrl)
      assert.strictEqual((yield* upstreamOrders.find(next))?.orderUrl, "https://ca.example/order/30")
    }))

  test("allow only one of two simultaneous writers to store the same upstream order", () =>
    Effect.gen(function*() {
      const other = yield* database.another
      for (let round = 0; round < 10; round++) {
        const both = [yield* inserted, yield* inserted]
        const kept = yield* Effect.all(
          both.map((orderId, index) =>
            Effect.result(Effect.provideService(
              transaction(opened(orderId, round, 120)),
              Database,
              index === 0 ? other : database.driver()
            ))
          ),
          { concurrency: 2 }
        )
        assert.lengthOf(kept.filter((one) => one._tag === "Success" && one.success), 1)
        const url = `https://ca.example/order/${round}`
        assert.strictEqual(yield* count(`SELECT count(*) FROM upstream_orders WHERE upstream_order_url = '${url}'`), 1)
      }
    }))

  test("store the URL of the certificate, and replace this URL with a later one", () =>
    Effect.gen(function*() {
      const orderId = yield* inserted
      const other = yield* inserted
      for (const number of [1, 2]) {
        const certificateUrl = `https://ca.example/cert/${number}`
        yield* upstreamOrders.issued({ orderId, certificateUrl, now: 120 + number })
        assert.strictEqual((yield* upstreamOrders.find(orderId))?.certificateUrl, certificateUrl)
      }
      assert.deepStrictEqual((yield* stamps(orderId)).times, [100, 122])
      assert.isUndefined((yield* upstreamOrders.find(other))?.certificateUrl)
    }))

  test("end only if they are processing, and never change again", () =>
    Effect.gen(function*() {
      const bystander = yield* inserted
      for (const from of statuses) {
        for (const status of ["valid", "invalid"] as const) {
          const orderId = yield* inserted
          yield* set(orderId, from)
          yield* upstreamOrders.end({ orderId, status, error: "why", now: 140 })
          assert.deepInclude(
            yield* stamps(orderId),
            from === "processing"
              ? { status, error: "why", times: [100, 140] }
              : { status: from, error: null, times: [100, 100] },
            `${from} to ${status}`
          )
        }
      }
      assert.deepInclude(yield* stamps(bystander), { status: "processing", error: null })
    }))

  test("store at most 2000 characters of the upstream's error", () =>
    Effect.gen(function*() {
      for (
        const [error, kept] of [
          ["x".repeat(2000), "x".repeat(2000)],
          [`${"é".repeat(2000)}!`, "é".repeat(2000)],
          [undefined, null]
        ] as const
      ) {
        const orderId = yield* inserted
        yield* upstreamOrders.end({ orderId, status: "invalid", error, now: 140 })
        assert.strictEqual((yield* stamps(orderId)).error, kept)
      }
    }))

  test("tell which of the given upstream orders belong to a row, whatever the status of the row", () =>
    Effect.gen(function*() {
      for (const [index, status] of statuses.entries()) {
        const orderId = yield* inserted
        yield* opened(orderId, index, 120)
        yield* set(orderId, status)
      }
      yield* inserted
      const urls = [0, 1, 2, 3, 4].map((number) => `https://ca.example/order/${number}`)
      assert.sameMembers([...yield* upstreamOrders.claimed(urls)], urls.slice(0, 3))
      assert.deepStrictEqual(yield* upstreamOrders.claimed(urls.slice(3)), [])
      assert.deepStrictEqual(yield* upstreamOrders.claimed(["https://ca.example/order/1"]), [
        "https://ca.example/order/1"
      ])
      assert.deepStrictEqual(yield* upstreamOrders.claimed([]), [])
    }))
})
