import * as Effect from "effect/Effect"
import type { AccountId, OrderId } from "../domain/Id.ts"
import { firstIdAt, idBefore, OrderId as makeOrderId } from "../domain/Id.ts"
import { int, name, text, uuid, uuidBytes } from "../engine/sql/Column.ts"
import { first } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"
import { unissued } from "./orders/Unissued.ts"

/*
 * These statements find out whether the number of rows of a kind has reached a limit, and when the last counted row was
 * created. Each statement reads an index from the newest row, and stops at the limit.
 */

const newAccounts = statement({
  name: "limit_accounts",
  params: { profile: name(), network: text(), since: int, skip: int },
  row: { createdAt: int },
  sql: () =>
    `SELECT created_at AS "createdAt" FROM accounts
     WHERE profile = :profile AND created_network = :network AND created_at > :since
     ORDER BY created_at DESC LIMIT 1 OFFSET :skip`
})

const ofAccount = { accountId: uuid<AccountId>(), since: uuid<OrderId>(), skip: int }

// If the condition on the account were an equality, PostgreSQL would walk the orders of all accounts by their ids,
// because that index would also have the wanted order.
const newestOf = (table: "" | "o.") =>
  `(${table}account_id, ${table}id) > (:accountId, :since) AND ${table}account_id <= :accountId`

const newOrders = statement({
  name: "limit_orders",
  params: ofAccount,
  row: { createdAt: int },
  sql: ({ indexedBy }) =>
    `SELECT created_at AS "createdAt" FROM orders ${indexedBy("orders_account_id_id")}
     WHERE ${
      newestOf("")
    } AND replaces IS NULL AND failed_replaces IS NULL ORDER BY account_id DESC, id DESC LIMIT 1 OFFSET :skip`
})

// For each account of the credential, its orders are read from the index on account and id. The clock of a process may
// have been ahead when it made an id, so the time decides which orders count.
const credentialOrders = `FROM accounts a CROSS JOIN orders o
     WHERE a.eab_kid = :kid AND o.account_id = a.id AND o.id > :from AND o.created_at > :since
       AND o.replaces IS NULL AND o.failed_replaces IS NULL`

const ofCredentials = { kid: uuidBytes, from: uuid<OrderId>(), since: int }

const ofCredential = statement({
  name: "limit_credential",
  params: { ...ofCredentials, skip: int },
  row: { createdAt: int },
  sql: () => `SELECT o.created_at AS "createdAt" ${credentialOrders} ORDER BY o.created_at DESC LIMIT 1 OFFSET :skip`
})

const countOfCredential = statement({
  name: "limit_credential_count",
  params: ofCredentials,
  row: { total: int },
  sql: () => `SELECT count(*) AS "total" ${credentialOrders}`
})

const replacing = statement({
  name: "limit_replacing",
  params: { ...ofAccount, replaces: text() },
  row: { createdAt: int },
  sql: ({ indexedBy }) =>
    `SELECT created_at AS "createdAt" FROM orders ${indexedBy("orders_account_id_id")}
     WHERE ${
      newestOf("")
    } AND coalesce(replaces, failed_replaces) = :replaces ORDER BY account_id DESC, id DESC LIMIT 1 OFFSET :skip`
})

// SQLite keeps the order of cross joins: first the newest orders of the account, then their names.
const newNames = statement({
  name: "limit_names",
  params: ofAccount,
  row: { createdAt: int },
  sql: ({ indexedBy }) =>
    `SELECT o.created_at AS "createdAt" FROM orders o ${
      indexedBy("orders_account_id_id")
    } CROSS JOIN order_identifiers i
     WHERE ${newestOf("o.")} AND o.replaces IS NULL AND o.failed_replaces IS NULL AND i.order_id = o.id
     ORDER BY o.account_id DESC, o.id DESC LIMIT 1 OFFSET :skip`
})

const pending = statement({
  name: "limit_pending_authorizations",
  params: { ...ofAccount, now: int },
  row: { createdAt: int },
  sql: (f) =>
    `SELECT o.created_at AS "createdAt" FROM orders o CROSS JOIN authorizations a
     WHERE o.account_id = :accountId AND o.id > :since AND o.status = 'pending'${
      unissued(f, "o.")
    } AND o.replaces IS NULL
       AND (o.expires_at IS NULL OR o.expires_at > :now) AND a.order_id = o.id AND a.status = 'pending'
     ORDER BY o.id DESC LIMIT 1 OFFSET :skip`
})

const ofOrders = { orders: newOrders, names: newNames } as const

const createdAt = Effect.map((row: { readonly createdAt: number } | undefined) => row?.createdAt)

/**
 * Skips the `skip` newest accounts, and returns when the next account was created. Counts only accounts of the profile
 * that were created from this network and after an epoch second.
 */
export const accountBut = (skip: number, of: { profile: string; network: string; since: number }) =>
  createdAt(first(newAccounts, { ...of, skip }))

const afterSecond = (since: number): OrderId => makeOrderId(firstIdAt(since + 1))

/**
 * The rows are orders, or names of orders. Skips the newest rows, as many as `skip` says, and returns when the order of
 * the next row was created. Counts only orders that the account created after an epoch second and that replace no
 * certificate.
 */
export const orderBut = (
  skip: number,
  { accountId, rows, since }: { rows: keyof typeof ofOrders; accountId: AccountId; since: number }
) => createdAt(first(ofOrders[rows], { accountId, since: afterSecond(since), skip }))

/**
 * Does the same as {@link orderBut} for pending authorizations. Counts only authorizations whose orders are pending and
 * have not expired at `now` (epoch seconds).
 */
export const pendingBut = (
  skip: number,
  { accountId, now, since }: { accountId: AccountId; now: number; since: number }
) => createdAt(first(pending, { accountId, now, since: afterSecond(since), skip }))

/** Does the same as {@link orderBut} for the orders that replace the given certificate. */
export const replacementBut = (
  skip: number,
  { accountId, replaces, since }: { accountId: AccountId; replaces: string; since: number }
) => createdAt(first(replacing, { accountId, replaces, since: afterSecond(since), skip }))

/** Does the same as {@link orderBut} for the orders of all accounts of a credential. */
export const credentialBut = (skip: number, { kid, since }: { readonly kid: string; readonly since: number }) =>
  createdAt(first(ofCredential, { kid, from: idBefore(since), since, skip }))

/** Returns how many orders {@link credentialBut} counts. */
export const credentialOrderCount = ({ kid, since }: { readonly kid: string; readonly since: number }) =>
  Effect.map(first(countOfCredential, { kid, from: idBefore(since), since }), (row) => row?.total ?? 0)
