import { Effect } from "effect"
import { assert, describe } from "vitest"
import { operatorProblemOf } from "../../../src/domain/OperatorProblem.ts"
import * as orders from "../../../src/operations/operator/OrderRecords.ts"
import * as removal from "../../../src/operations/operator/OrderRemoval.ts"
import { findBySerial } from "../../../src/operations/operator/Serials.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, profileOf, sql } from "../../support/Graph.ts"
import { issueTo, useOwnCa } from "../../support/Issued.ts"

const config = configOf()

describe.each(databases)("the serial numbers of certificates on $name", (backend) => {
  const { test } = useOwnCa(backend)

  const issued = Effect.gen(function*() {
    const { orderId } = yield* issueTo(yield* callerAt(profileOf(config)), ["a.example"])
    const { certSerial = "" } = (yield* orders.detail(config, orderId)).order
    return { orderId, certSerial }
  })

  test("identify the orders of the certificates", () =>
    Effect.gen(function*() {
      const { certSerial, orderId } = yield* issued
      assert.strictEqual((yield* findBySerial(certSerial)).id, orderId)
    }))

  test("are refused if no order has them, with a message that says what to do", () =>
    Effect.gen(function*() {
      const { message } = operatorProblemOf(
        yield* Effect.flip(Effect.catchTag(findBySerial("4a1b"), "StorageFailed", Effect.die))
      )
      assert.match(message, /^There is no certificate 4a1b\. .*crl revoke/)
    }))

  test("are refused if certificates of several CAs have them, with a message that names the orders", () =>
    Effect.gen(function*() {
      const [one, two] = [yield* issued, yield* issued]
      yield* sql(`UPDATE orders SET cert_serial = '${one.certSerial}'`)
      const { message } = operatorProblemOf(
        yield* Effect.flip(Effect.catchTag(findBySerial(one.certSerial), "StorageFailed", Effect.die))
      )
      for (const { orderId } of [one, two]) assert.include(message, `${orderId} (profile default)`)
    }))

  test("are distinguished from the ids of orders by every action that accepts an id", () =>
    Effect.gen(function*() {
      const { certSerial, orderId } = yield* issued
      const written = certSerial.toUpperCase().replaceAll(/(..)(?=.)/g, "$1:")
      const operator = { kind: "cli", id: "tester" } as const
      for (
        const given of [
          orders.detail(config, written),
          orders.chain(written),
          orders.revoke(config, operator, written, undefined),
          removal.remove(operator, written)
        ]
      ) {
        const refused = yield* Effect.flip(
          given as Effect.Effect<unknown, Effect.Error<typeof given>, Effect.Services<typeof given>>
        )
        assert.deepInclude(refused, {
          _tag: "NoSuch",
          hint: `It is the serial number of the certificate of order ${orderId}.`
        })
      }
      const refused = yield* Effect.flip(orders.chain("4a1b"))
      assert.isUndefined("hint" in refused ? refused.hint : undefined)
    }))
})
