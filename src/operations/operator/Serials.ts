import * as Effect from "effect/Effect"
import { parseSerial } from "../../crypto/x509/Serial.ts"
import { BadRequest, NoSuch } from "../../domain/OperatorError.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"

/*
 * Finds orders by the serial numbers of their certificates, because an operator who looks at a certificate sees its
 * serial number.
 */

/**
 * A page that contains every order with a given serial. Each profile has only one such order, unless the profile has
 * had several CAs.
 */
export const everyOfSerial = { limit: 1000, offset: 0 }

const ordersOf = (serial: string) => orderSearch.search({ certSerial: serial }, everyOfSerial)

/**
 * Finds the order whose certificate has this serial number, in its stored form. Fails if no order has the serial. Also
 * fails if several orders have it, which is possible because each CA chooses its serials independently.
 */
export const findBySerial = Effect.fn("Serials.findBySerial")(function*(serial: string) {
  const [order, ...others] = yield* ordersOf(serial)
  if (order === undefined) {
    const hint =
      "No order has it. After a restore, crl revoke takes the serial numbers of certificates that are not known any more."
    return yield* new NoSuch({ noun: "certificate", id: serial, hint })
  }
  if (others.length > 0) {
    const all = [order, ...others].map(({ id, profile }) => `${id} (profile ${profile})`).join(", ")
    return yield* new BadRequest({
      detail: `Several certificates have the serial number ${serial}, those of the orders ${all}; name one of these.`
    })
  }
  return order
})

/**
 * Returns the refusal for an id that no order has. If the id is the serial number of a certificate, the refusal says
 * so.
 */
export const noSuchOrder = Effect.fnUntraced(function*(id: string) {
  const serial = parseSerial(id)
  const found = serial === undefined ? [] : yield* ordersOf(serial)
  const hint = found.length === 0
    ? undefined
    : `It is the serial number of the certificate of order ${found.map((one) => one.id).join(", ")}.`
  return yield* new NoSuch({ noun: "order", id, hint })
})
