import * as Effect from "effect/Effect"
import type { AccountId, OrderId } from "../../domain/Id.ts"
import { firstIdAt, OrderId as makeOrderId } from "../../domain/Id.ts"
import { namesOf } from "../../domain/Order.ts"
import { int, uuid } from "../../engine/sql/Column.ts"
import { lenient, lenientFirst } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { identifiersColumn } from "../Columns.ts"

/* What an account has ordered lately. Ids of orders begin with their time, so an index on the ids is enough. */

const ofAccount = { accountId: uuid<AccountId>(), week: uuid<OrderId>() }

const countStatement = statement({
  name: "account_activity_count",
  params: { ...ofAccount, day: uuid<OrderId>() },
  row: { day: int, week: int },
  sql: ({ typed }) =>
    `SELECT count(CASE WHEN id > ${typed(":day", "uuid")} THEN 1 END) AS "day", count(*) AS "week"
     FROM orders WHERE account_id = :accountId AND id > :week`
})

const newestStatement = statement({
  name: "account_activity_newest",
  params: { ...ofAccount, limit: int },
  row: { identifiers: identifiersColumn },
  sql: () =>
    `SELECT identifiers FROM orders WHERE account_id = :accountId AND id > :week
     ORDER BY id DESC LIMIT :limit`
})

const mostOrders = 1000
const mostNames = 5
const daySeconds = 86_400

const idAt = (seconds: number): OrderId => makeOrderId(firstIdAt(Math.max(0, seconds)))

/**
 * Returns how many orders an account has placed in the last 24 hours and in the last 7 days, and the names that its
 * newest orders of these days have most often.
 */
export const recentOrders = Effect.fnUntraced(function*(accountId: AccountId, now: number) {
  const week = idAt(now - 7 * daySeconds)
  const counts = yield* lenientFirst(countStatement, { accountId, week, day: idAt(now - daySeconds) })
  const newest = yield* lenient(newestStatement, { accountId, week, limit: mostOrders })
  const orders = new Map<string, number>()
  for (const name of newest.flatMap(namesOf)) orders.set(name, (orders.get(name) ?? 0) + 1)
  const names = [...orders].map(([name, many]) => ({ name, orders: many }))
    .toSorted((one, other) => other.orders - one.orders || (one.name < other.name ? -1 : 1))
    .slice(0, mostNames)
  return { day: counts?.day ?? 0, week: counts?.week ?? 0, names }
})
