import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import type { OrderBody } from "../../support/AcmeSession.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, sql } from "../../support/Graph.ts"
import { at, bodyOf, headerOf, newClient, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* Tests what happens to an order when one of its authorizations is deactivated (RFC 8555 sections 7.1.6 and 7.5.2). */

const orderOf = ({ body }: Answer): OrderBody => JSON.parse(String(body)) as OrderBody
const type = "urn:ietf:params:acme:error:unauthorized"
const because = (name: string): string =>
  `The authorization of ${name} was deactivated, so this order cannot become ready any more; place a new one.`

describe.each(databases)("a deactivated authorization, on $name", (backend) => {
  const { test } = useWorld(backend, {
    first: () =>
      Effect.gen(function*() {
        const { kid, send } = yield* newClient(yield* surfaceOf(configOf()))
        const placed = yield* send(urlOf(at("/newOrder")), {
          identifiers: ["a.example", "b.example"].map((value) => ({ type: "dns", value }))
        })
        const url = headerOf(placed, "location")
        const { authorizations: [first = "", second = ""], finalize } = orderOf(placed)
        return {
          send,
          first,
          second,
          finalize,
          deactivate: (authorization: string) => send(authorization, { status: "deactivated" }),
          order: Effect.map(send(url), orderOf),
          listed: Effect.map(
            send(`${kid}/orders`),
            ({ body }) => (JSON.parse(String(body)) as { readonly orders: ReadonlyArray<string> }).orders.includes(url)
          )
        }
      })
  })

  test("makes a pending order invalid, with the reason in its error", ({ deactivate, finalize, first, listed, order, send }) =>
    Effect.gen(function*() {
      assert.isTrue(yield* listed)
      assert.strictEqual((yield* deactivate(first)).status, 200)
      const ended = yield* order
      assert.strictEqual(ended.status, "invalid")
      assert.deepStrictEqual<object | undefined>(ended.error, {
        type,
        status: 403,
        detail: because("a.example"),
        identifier: { type: "dns", value: "a.example" }
      })
      assert.isFalse(yield* listed)
      assert.strictEqual(
        bodyOf(yield* send(finalize, { csr: "" })).detail,
        `The order is invalid; it can be finalized only once, and only when it is ready. ${because("a.example")}`
      )
      assert.strictEqual((yield* deactivate(first)).status, 200, "a second time changes nothing")
    }))

  test("makes a ready order pending until the order expires", ({ deactivate, finalize, listed, order, second, send }) =>
    Effect.gen(function*() {
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'ready'")
      assert.isTrue(yield* listed)
      assert.strictEqual((yield* deactivate(second)).status, 200)
      const waiting = yield* order
      assert.strictEqual(waiting.status, "pending")
      assert.strictEqual(waiting.error?.detail, because("b.example"))
      assert.isFalse(yield* listed)
      const refused = bodyOf(yield* send(finalize, { csr: "" }))
      assert.deepStrictEqual([refused.type?.split(":").at(-1), refused.detail], [
        "orderNotReady",
        `The order is pending; it can be finalized only once, and only when it is ready. ${because("b.example")}`
      ])
      yield* TestClock.adjust("8 days")
      assert.strictEqual((yield* order).status, "invalid")
    }))

  test("does not change an order that is being issued", ({ deactivate, first, listed, order }) =>
    Effect.gen(function*() {
      yield* sql("UPDATE authorizations SET status = 'valid'")
      yield* sql("UPDATE orders SET status = 'processing'")
      assert.strictEqual((yield* deactivate(first)).status, 200)
      const still = yield* order
      assert.deepStrictEqual([still.status, still.error], ["processing", undefined])
      assert.isTrue(yield* listed)
    }))
})
