import * as Effect from "effect/Effect"
import { uuid } from "../engine/sql/Column.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { Database } from "../engine/sql/Database.ts"
import { run } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

const lockOf = (table: "accounts" | "orders") =>
  statement({
    name: `${table}_lock`,
    params: { id: uuid() },
    row: {},
    sql: () => `SELECT 1 FROM ${table} WHERE id = :id FOR UPDATE`
  })

const statements = { accounts: lockOf("accounts"), orders: lockOf("orders") }

/** Locks a row until the transaction ends. SQLite needs no lock, because it has only one writer. */
export const lockRow = (table: "accounts" | "orders", id: string): Effect.Effect<void, StorageFailed, Database> =>
  Database.use(({ dialect }) => dialect === "sqlite" ? Effect.void : run(statements[table], { id }))

// In PostgreSQL, a transaction that stores a certificate locks the row of its order. So a shared lock on these rows
// waits for all such transactions.
const processingStatement = statement({
  name: "order_processing_wait",
  params: {},
  row: {},
  sql: () => `SELECT 1 FROM orders WHERE status = 'processing' FOR SHARE`
})

/** Waits until certificates that are being stored are visible. SQLite needs no wait, because it has only one writer. */
export const awaitStoring = Effect.flatMap(
  Database,
  ({ dialect }) => dialect === "sqlite" ? Effect.void : run(processingStatement, {})
)
