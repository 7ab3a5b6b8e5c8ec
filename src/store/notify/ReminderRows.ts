import * as Effect from "effect/Effect"
import type { OrderId } from "../../domain/Id.ts"
import { int, packedUuid, rows, uuid } from "../../engine/sql/Column.ts"
import { all, lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { windowsIn } from "../Windows.ts"

/*
 * Stores which certificates contacts were reminded of by mail, and how many of these mails were sent to each address
 * (docs/contribute/decisions/notifications.md, "Expiring certificates").
 */

const recentStatement = statement({
  name: "expiry_reminder_recent",
  params: { orders: rows, since: int },
  row: { id: uuid<OrderId>() },
  sql: ({ checked, oneOf }) =>
    `SELECT order_id AS "id" FROM expiry_reminders
     WHERE order_id ${oneOf(":orders", "uuid")} AND ${checked("sent_at")} > :since`
})

// Two workers may have read the same certificates. The worker that writes the row is the one that sends the mail.
const takeStatement = statement({
  name: "expiry_reminder_take",
  params: { orders: rows, since: int, now: int },
  row: { id: uuid<OrderId>() },
  sql: ({ aside, at, each, typed }) =>
    `INSERT INTO expiry_reminders AS r (order_id, sent_at)
       SELECT o.id, ${typed(":now", "bigint")} FROM orders o JOIN accounts a ON a.id = o.account_id
       WHERE o.id IN (SELECT ${at(0, "uuid")} FROM ${each(":orders")}) AND ${aside("a.status")} = 'valid'
     ON CONFLICT (order_id) DO UPDATE SET sent_at = excluded.sent_at WHERE r.sent_at <= :since
     RETURNING order_id AS "id"`
})

const addresses = windowsIn({ table: "reminded_addresses", counter: "mails", noun: "reminded_address" })

const sweepStatement = statement({
  name: "expiry_reminder_sweep",
  params: { upTo: int, limit: int },
  row: { id: uuid<OrderId>() },
  sql: () =>
    `DELETE FROM expiry_reminders WHERE order_id IN
       (SELECT order_id FROM expiry_reminders WHERE sent_at <= :upTo ORDER BY sent_at LIMIT :limit)
     RETURNING order_id AS "id"`
})

const packed = (orders: ReadonlyArray<OrderId>) => orders.map((id) => [packedUuid(id)])

/** Returns those of the orders about which a mail was sent after an epoch second. */
export const recent = (orders: ReadonlyArray<OrderId>, since: number) =>
  Effect.map(
    lenient(recentStatement, { orders: packed(orders), since }),
    (found) => new Set(found.map(({ id }) => id))
  )

/**
 * Claims the right to send mail about these orders now. Returns the orders whose account is valid and about which no
 * mail was sent after `since`.
 */
export const take = (orders: ReadonlyArray<OrderId>, since: number, now: number) =>
  Effect.map(
    all(takeStatement, { orders: packed(orders), since, now }),
    (taken) => new Set(taken.map(({ id }) => id))
  )

/**
 * Counts a mail to an address. If the window of the address has reached the limit, counts nothing and returns `false`.
 */
export const count = (of: Parameters<typeof addresses.take>[0]) =>
  Effect.map(addresses.take(of), (windowStartedAt) => windowStartedAt !== undefined)

/** Deletes up to `limit` rows that were written at or before an epoch second. Returns how many rows were deleted. */
export const sweep = (upTo: number, limit: number) =>
  Effect.map(all(sweepStatement, { upTo, limit }), (gone) => gone.length)

/** Deletes windows of addresses. Returns how many windows were deleted. */
export const sweepAddresses = addresses.sweep
