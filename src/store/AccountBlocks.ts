import * as Effect from "effect/Effect"
import type { AccountId } from "../domain/Id.ts"
import { int, text, uuid } from "../engine/sql/Column.ts"
import type { StorageFailed } from "../engine/sql/Database.ts"
import { Database } from "../engine/sql/Database.ts"
import { first, run } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/* Blocks of accounts. An account has at most one block, which is in its own row. */

const id = uuid<AccountId>()

const blockStatement = statement({
  name: "account_block",
  params: { id, reason: text(), now: int },
  row: { id },
  sql: () =>
    `UPDATE accounts SET blocked_at = :now, block_reason = :reason
     WHERE id = :id AND status = 'valid' AND blocked_at IS NULL RETURNING id`
})

const unblockStatement = statement({
  name: "account_unblock",
  params: { id, blockedAt: int },
  row: { id },
  sql: () =>
    `UPDATE accounts SET blocked_at = NULL, block_reason = NULL
     WHERE id = :id AND status = 'valid' AND blocked_at = :blockedAt RETURNING id`
})

const awaitStatement = statement({
  name: "account_block_await",
  params: {},
  row: {},
  only: "postgres",
  sql: () => "SELECT pg_advisory_xact_lock_shared(hashtextextended('acme-svc account blocks', 0))"
})

/** Blocks a valid account. Returns undefined if the account is not valid, or is blocked already. */
export const block = (id: AccountId, reason: string, now: number) => first(blockStatement, { id, reason, now })

/** Removes the block that began at a time. Returns undefined if the account is not valid, or has no such block. */
export const unblock = (id: AccountId, blockedAt: number) => first(unblockStatement, { id, blockedAt })

/**
 * Waits for processes of older versions that are starting at this moment, and holds up others until the transaction
 * ends (migration 0053). SQLite needs no lock, because it has only one writer.
 */
export const awaitStarting: Effect.Effect<void, StorageFailed, Database> = Database.use(({ dialect }) =>
  dialect === "sqlite" ? Effect.void : run(awaitStatement, {})
)
