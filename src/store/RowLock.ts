import * as Effect from "effect/Effect"
import { uuid } from "../engine/sql/Column.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { Database } from "../engine/sql/Database.ts"
import { run } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"
import { unissued } from "./orders/Unissued.ts"

type Table = "accounts" | "orders"

const lockOf = (table: Table, purpose: "change" | "deletion") =>
  statement({
    name: `${table}_lock_for_${purpose}`,
    params: { id: uuid() },
    row: {},
    only: "postgres",
    sql: () => `SELECT 1 FROM ${table} WHERE id = :id FOR ${purpose === "change" ? "NO KEY UPDATE" : "UPDATE"}`
  })

const forChange = { accounts: lockOf("accounts", "change"), orders: lockOf("orders", "change") }
const accountForDeletion = lockOf("accounts", "deletion")

/**
 * Locks a row until the transaction ends. Rows that refer to the locked row may still be inserted, so newOrder does not
 * wait for other requests of the account. SQLite needs no lock, because it has only one writer.
 */
export const lockRow = (table: Table, id: string): Effect.Effect<void, StorageFailed, Database> =>
  Database.use(({ dialect }) => dialect === "sqlite" ? Effect.void : run(forChange[table], { id }))

/** Locks an account that is about to be deleted, so that no order can be inserted for the account in the meantime. */
export const lockForDeletion = (id: string): Effect.Effect<void, StorageFailed, Database> =>
  Database.use(({ dialect }) => dialect === "sqlite" ? Effect.void : run(accountForDeletion, { id }))

// On PostgreSQL, a transaction that stores a certificate locks the row of its order. So a shared lock on these rows
// waits for all such transactions to end.
const processingStatement = statement({
  name: "order_processing_wait",
  params: {},
  row: {},
  only: "postgres",
  sql: (f) => `SELECT 1 FROM orders WHERE status = 'processing'${unissued(f)} FOR SHARE`
})

/**
 * Waits until the certificates that are being stored at this moment are visible. SQLite needs no wait, because it has
 * only one writer.
 */
export const awaitStoring = Effect.flatMap(
  Database,
  ({ dialect }) => dialect === "sqlite" ? Effect.void : run(processingStatement, {})
)
