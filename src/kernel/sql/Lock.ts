import { Effect } from "effect"
import { uuid } from "./Column.ts"
import type { StorageFailed } from "./Database.ts"
import { Database, run } from "./Database.ts"
import { statement } from "./Statement.ts"

const lockOf = (table: "accounts" | "orders") =>
  statement({
    name: `${table}_lock`,
    params: { id: uuid() },
    row: {},
    sql: () => `SELECT 1 FROM ${table} WHERE id = :id FOR UPDATE`
  })

const statements = { accounts: lockOf("accounts"), orders: lockOf("orders") }

/** Locks a row until the transaction ends. SQLite's writer is alone already. */
export const lockRow = (table: "accounts" | "orders", id: string): Effect.Effect<void, StorageFailed, Database> =>
  Effect.flatMap(Database, ({ dialect }) => dialect === "sqlite" ? Effect.void : run(statements[table], { id }))

// PostgreSQL: whoever stores a certificate holds its order's row, so a shared lock on these rows waits for all of them.
const processingStatement = statement({
  name: "order_processing_wait",
  params: {},
  row: {},
  sql: () => `SELECT 1 FROM orders WHERE status = 'processing' FOR SHARE`
})

/** Waits until certificates that are being stored are there to be seen. SQLite's writer is alone already. */
export const awaitStoring = Effect.flatMap(
  Database,
  ({ dialect }) => dialect === "sqlite" ? Effect.void : run(processingStatement, {})
)
