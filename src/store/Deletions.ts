import * as Effect from "effect/Effect"
import type { AccountId, OrderId } from "../domain/Id.ts"
import type { OrderStatus } from "../domain/Order.ts"
import { bytes, int, name, nullable, packedUuid, rows, text, uuid } from "../engine/sql/Column.ts"
import { all, first, run } from "../engine/sql/Query.ts"
import type { Fragments } from "../engine/sql/Statement.ts"
import { statement } from "../engine/sql/Statement.ts"
import { unissued } from "./orders/Unissued.ts"

/* Deletes accounts and orders, and counts the certificates that forbid a deletion. */

/**
 * Returns the SQL condition that the certificate of an order is live: it was issued, is not revoked, and is not known
 * to have expired (docs/configure/credentials.md).
 */
const live = (order: string): string =>
  `${order}.certificate IS NOT NULL AND ${order}.revoked_at IS NULL
   AND (${order}.cert_not_after IS NULL OR ${order}.cert_not_after < 0 OR ${order}.cert_not_after >= :now)`

const account = { id: uuid<AccountId>(), profile: name() }

const among = ({ oneOf }: Fragments) => oneOf(":accounts", "uuid")

// Only unfinished orders are locked, because no certificate is issued for an order that has ended.
const lockOrdersStatement = statement({
  name: "account_orders_lock",
  params: { accounts: rows },
  row: {},
  sql: (f) =>
    `SELECT 1 FROM orders WHERE account_id ${among(f)} AND status IN ('pending', 'ready', 'processing')${unissued(f)}
     ORDER BY id${f.dialect === "postgres" ? " FOR UPDATE" : ""}`
})

const ownedStatement = statement({
  name: "account_owned",
  params: { accounts: rows },
  row: { ...account, orders: int, authorizations: int },
  sql: (f) =>
    `SELECT a.id AS "id", a.profile AS "profile", (SELECT count(*) FROM orders o WHERE o.account_id = a.id) AS "orders",
       (SELECT count(*) FROM orders o JOIN authorizations z ON z.order_id = o.id WHERE o.account_id = a.id)
         AS "authorizations"
     FROM accounts a WHERE a.id ${among(f)} ORDER BY a.id`
})

const liveStatement = statement({
  name: "account_live_certificates",
  params: { accounts: rows, now: int },
  row: { live: int },
  sql: (f) =>
    `SELECT count(*) AS "live" FROM orders o ${f.indexedBy("orders_account_live")} WHERE o.account_id ${among(f)} AND ${
      live("o")
    }`
})

const deactivateStatement = statement({
  name: "account_deactivate_all",
  params: { accounts: rows },
  row: account,
  sql: (f) =>
    `UPDATE accounts SET status = 'deactivated' WHERE id ${among(f)} AND status = 'valid'
     RETURNING id AS "id", profile AS "profile"`
})

const deleteAccountsStatement = statement({
  name: "account_delete_all",
  params: { accounts: rows },
  row: { id: account.id },
  sql: (f) => `DELETE FROM accounts WHERE id ${among(f)} RETURNING id AS "id"`
})

const relayedStatement = statement({
  name: "account_relayed",
  params: { accounts: rows },
  row: { orderId: uuid<OrderId>(), profile: name(), orderUrl: nullable(text()), csr: bytes },
  sql: (f) =>
    `SELECT o.id AS "orderId", o.profile AS "profile", u.upstream_order_url AS "orderUrl", u.csr_der AS "csr"
     FROM orders o JOIN upstream_orders u ON u.order_id = o.id
     WHERE o.account_id ${among(f)} AND o.status = 'processing'${unissued(f, "o.")}`
})

const orderStatement = statement({
  name: "order_deletable",
  params: { id: uuid<OrderId>(), now: int },
  row: {
    id: uuid<OrderId>(),
    profile: name(),
    accountId: uuid<AccountId>(),
    status: text<OrderStatus>(),
    isLive: int,
    authorizations: int
  },
  sql: () =>
    `SELECT o.id AS "id", o.profile AS "profile", o.status AS "status", o.account_id AS "accountId",
       CASE WHEN ${live("o")} THEN 1 ELSE 0 END AS "isLive",
       (SELECT count(*) FROM authorizations a WHERE a.order_id = o.id) AS "authorizations"
     FROM orders o WHERE o.id = :id`
})

const deleteOrderStatement = statement({
  name: "order_delete",
  params: { id: uuid<OrderId>(), now: int },
  row: { id: uuid<OrderId>() },
  sql: () => `DELETE FROM orders WHERE id = :id AND NOT (${live("orders")}) RETURNING id`
})

type Ids = ReadonlyArray<AccountId>

const packed = (accounts: Ids) => accounts.map((id) => [packedUuid(id)])

/**
 * Locks the unfinished orders of accounts until the transaction ends, so that no certificate is issued for them. The
 * caller must have locked the accounts first.
 */
export const lockOrders = (accounts: Ids) => run(lockOrdersStatement, { accounts: packed(accounts) })

/**
 * Returns the orders of accounts for which an upstream may be issuing a certificate. The caller must have locked these
 * orders with {@link lockOrders}.
 */
export const relayed = (accounts: Ids) => all(relayedStatement, { accounts: packed(accounts) })

/** Returns the accounts, each with the number of its orders and the number of its authorizations. */
export const owned = (accounts: Ids) => all(ownedStatement, { accounts: packed(accounts) })

/** Counts the certificates of the accounts that may still be in use at an epoch second. */
export const liveCertificates = (accounts: Ids, now: number) =>
  Effect.map(first(liveStatement, { accounts: packed(accounts), now }), (row) => row?.live ?? 0)

/** Deactivates those accounts that are valid, and returns the accounts that were deactivated. */
export const deactivateAccounts = (accounts: Ids) => all(deactivateStatement, { accounts: packed(accounts) })

/**
 * Deletes accounts with everything they own, and returns the accounts that were deleted. The caller must have checked
 * {@link liveCertificates} before.
 */
export const deleteAccounts = (accounts: Ids) => all(deleteAccountsStatement, { accounts: packed(accounts) })

/**
 * Finds an order. The result also says whether the certificate of the order may still be in use at an epoch second, and
 * how many authorizations the order has.
 */
export const findOrder = (id: OrderId, now: number) => first(orderStatement, { id, now })

/**
 * Deletes an order with everything it owns. Returns `undefined` if its certificate may still be in use, or if the order
 * does not exist.
 */
export const deleteOrder = (id: OrderId, now: number) => first(deleteOrderStatement, { id, now })
