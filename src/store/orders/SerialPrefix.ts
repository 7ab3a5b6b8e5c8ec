import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { int, name, text, uuid } from "../../engine/sql/Column.ts"
import { lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import * as orders from "./OrderRows.ts"
import { findListed } from "./OrderSearch.ts"

/* Finds orders by the beginning of the serial number of their certificate. */

const prefixStatement = statement({
  name: "order_by_serial_prefix",
  params: { profile: name(), from: text(), before: text(), limit: int },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `SELECT id FROM orders WHERE profile = :profile AND cert_serial IS NOT NULL AND cert_serial >= :from
       AND cert_serial < :before ORDER BY cert_serial LIMIT :limit`
})

/**
 * Returns orders whose serial number, in its stored form, begins with these digits. The index begins with the profile,
 * so each profile is read by itself.
 */
export const bySerialPrefix = Effect.fnUntraced(function*(digits: string, limit: number) {
  const found: Array<OrderId> = []
  for (const { profile } of yield* orders.profiles) {
    if (found.length >= limit) break
    // Every hexadecimal digit is less than g.
    const rows = yield* lenient(prefixStatement, {
      profile,
      from: digits,
      before: `${digits}g`,
      limit: limit - found.length
    })
    found.push(...rows.map(({ id }) => id))
  }
  return yield* findListed(found)
})
