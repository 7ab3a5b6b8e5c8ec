import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Answer } from "../../../src/engine/http/Message.ts"
import * as sweeps from "../../../src/operations/work/Sweeps.ts"
import type { AuthorizationBody, OrderBody } from "../../support/AcmeSession.ts"
import { databases } from "../../support/Databases.ts"
import { configOf, fieldsOf, sql } from "../../support/Graph.ts"
import { at, bodyOf, headerOf, newClient, surfaceOf, urlOf } from "../../support/Handle.ts"
import { useWorld } from "../../support/UseWorld.ts"

/* The answers to a client that continues with an order or an authorization that has ended. */

const config = configOf()
const read = <A>({ body }: Answer): A => JSON.parse(String(body)) as A
const end = "1970-01-08T00:00:00Z"

describe.each(databases)("the answer to a late request, on $name", (backend) => {
  const { records, test } = useWorld(backend, {
    first: () =>
      Effect.gen(function*() {
        const { send } = yield* newClient(yield* surfaceOf(config))
        const placed = yield* send(urlOf(at("/newOrder")), { identifiers: [{ type: "dns", value: "a.example" }] })
        const { authorizations: [authorization = ""], finalize } = read<OrderBody>(placed)
        const { challenges } = read<AuthorizationBody>(yield* send(authorization))
        return {
          send,
          order: Effect.map(send(headerOf(placed, "location")), read<OrderBody>),
          finalize: Effect.map(send(finalize, { csr: "" }), bodyOf),
          trigger: Effect.map(send(challenges[0]?.url ?? "", {}), bodyOf),
          deactivate: Effect.map(send(authorization, { status: "deactivated" }), bodyOf)
        }
      })
  })

  for (const status of ["pending", "ready"] as const) {
    test(`says that an order expired while ${status}, before and after the order is swept`, ({ finalize, order }) =>
      Effect.gen(function*() {
        if (status === "ready") yield* sql("UPDATE authorizations SET status = 'valid'")
        yield* sql(`UPDATE orders SET status = '${status}'`)
        assert.isUndefined((yield* order).error)
        yield* TestClock.adjust("8 days")
        const problem = {
          type: "urn:ietf:params:acme:error:orderNotReady",
          status: 403,
          detail: `The order expired at ${end}; place a new one.`
        }
        for (const _ of ["lapsed", "swept"]) {
          assert.deepStrictEqual(yield* finalize, problem)
          const shown = yield* order
          assert.deepStrictEqual([shown.status, shown.error], ["invalid", problem])
          yield* sweeps.sweepOrders(config)
        }
      }))
  }

  const ended = [
    ["expired", `expired at ${end}, and its order with it`],
    ["invalid", "is invalid, because another of its challenges failed, whose error says why"],
    ["deactivated", "was deactivated"]
  ] as const
  for (const [status, why] of ended) {
    test(`says why a challenge cannot be triggered if its authorization is ${status}`, ({ trigger }) =>
      Effect.gen(function*() {
        if (status === "expired") yield* TestClock.adjust("8 days")
        else yield* sql(`UPDATE authorizations SET status = '${status}'`)
        assert.strictEqual((yield* trigger).detail, `The authorization of a.example ${why}; place a new order.`)
      }))
  }

  test("says that the order of a challenge has ended, even if the authorization has not", ({ trigger }) =>
    Effect.gen(function*() {
      yield* sql("UPDATE orders SET status = 'invalid'")
      assert.match((yield* trigger).detail ?? "", /^The order of the authorization of a\.example is no longer pending/)
    }))

  const kept = [
    ["valid", "valid", "order_valid", "the certificate of its order has been issued; revoke that one instead"],
    ["invalid", "invalid", "invalid", "it is invalid already, and nothing can be issued by it"]
  ] as const
  for (const [order, authorization, reason, why] of kept) {
    test(`says why an authorization cannot be deactivated if its order is ${order}`, ({ deactivate }) =>
      Effect.gen(function*() {
        yield* sql(`UPDATE authorizations SET status = '${authorization}'`)
        yield* sql(`UPDATE orders SET status = '${order}'`)
        const { detail } = yield* deactivate
        assert.strictEqual(detail, `The authorization of a.example cannot be deactivated: ${why}.`)
        assert.strictEqual(fieldsOf(records, "authz_deactivation_refused")[0]?.["reason"], reason)
      }))
  }
})
