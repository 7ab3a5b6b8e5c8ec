import { Effect } from "effect"
import type { AccountId, OrderId } from "../domain/Id.ts"
import { firstIdAt, OrderId as makeOrderId } from "../domain/Id.ts"
import { int, text, uuid } from "../kernel/sql/Column.ts"
import { first } from "../kernel/sql/Database.ts"
import { statement } from "../kernel/sql/Statement.ts"

/*
 * Whether there are so many rows of a kind, and when the last that counts was made: each walks an index from the newest row on,
 * no further than the limit.
 */

const newAccounts = statement({
  name: "limit_accounts",
  params: { profile: text(), network: text(), since: int, skip: int },
  row: { createdAt: int },
  sql: () =>
    `SELECT created_at AS "createdAt" FROM accounts
     WHERE profile = :profile AND created_network = :network AND created_at > :since
     ORDER BY created_at DESC LIMIT 1 OFFSET :skip`
})

const ofAccount = { accountId: uuid<AccountId>(), since: uuid<OrderId>(), skip: int }

// With two equalities PostgreSQL would walk the ids of all accounts, since these have the order wanted too.
const newestOf = (table: "" | "o.") =>
  `(${table}account_id, ${table}id) > (:accountId, :since) AND ${table}account_id <= :accountId`

const newOrders = statement({
  name: "limit_orders",
  params: ofAccount,
  row: { createdAt: int },
  sql: () =>
    `SELECT created_at AS "createdAt" FROM orders
     WHERE ${newestOf("")} ORDER BY account_id DESC, id DESC LIMIT 1 OFFSET :skip`
})

// SQLite keeps to the order of cross joins: from the account's newest orders to their names.
const newNames = statement({
  name: "limit_names",
  params: ofAccount,
  row: { createdAt: int },
  sql: () =>
    `SELECT o.created_at AS "createdAt" FROM orders o CROSS JOIN order_identifiers i
     WHERE ${newestOf("o.")} AND i.order_id = o.id
     ORDER BY o.account_id DESC, o.id DESC LIMIT 1 OFFSET :skip`
})

const pending = statement({
  name: "limit_pending_authorizations",
  params: ofAccount,
  row: { createdAt: int },
  sql: () =>
    `SELECT o.created_at AS "createdAt" FROM orders o CROSS JOIN authorizations a
     WHERE o.account_id = :accountId AND o.id > :since AND o.status = 'pending' AND a.order_id = o.id
       AND a.status = 'pending'
     ORDER BY o.id DESC LIMIT 1 OFFSET :skip`
})

const ofOrders = { orders: newOrders, names: newNames, pending } as const

const createdAt = Effect.map((row: { readonly createdAt: number } | undefined) => row?.createdAt)

/** When the account was made that is newest but so many, of those made at a profile from a network after an epoch second. */
export const accountBut = (skip: number, of: { profile: string; network: string; since: number }) =>
  createdAt(first(newAccounts, { ...of, skip }))

/**
 * When the order was made whose row is newest but so many, of those an account has made after an epoch second: orders
 * themselves, their names, or their authorizations while these and it are pending.
 */
export const orderBut = (
  skip: number,
  { accountId, rows, since }: { rows: keyof typeof ofOrders; accountId: AccountId; since: number }
) => createdAt(first(ofOrders[rows], { accountId, since: makeOrderId(firstIdAt(since + 1)), skip }))
