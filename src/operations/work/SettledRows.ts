import * as Effect from "effect/Effect"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { lifeMillis } from "../../engine/Time.ts"
import { lastRow } from "../../store/AuditSignals.ts"
import * as chained from "../../store/ChainedRows.ts"

/*
 * Says up to which id every row of the audit trail is visible. The chain and the receivers of the trail read rows in the
 * order of their ids, and must not pass a row that becomes visible later.
 */

const patienceMillis = 5000

/**
 * Waits until every transaction that may have inserted a row by now has ended. Returns `false` if such a
 * transaction is still open after five seconds.
 */
const settled: Effect.Effect<boolean, StorageFailed, Database> = Effect.gen(function*() {
  const begun = yield* lifeMillis
  for (let open: ReadonlySet<string> = new Set(yield* chained.writers); open.size > 0;) {
    if ((yield* lifeMillis) - begun >= patienceMillis) return false
    yield* chained.pause
    const now = new Set(yield* chained.writers)
    open = new Set([...open].filter((writer) => now.has(writer)))
  }
  return true
})

/** The newest row, and whether every row up to it is visible now. */
export interface Settled {
  readonly upto: number
  readonly isSettled: boolean
}

/**
 * Returns the newest row after an id, or the id itself if there is none. Waits up to five seconds until every row up to
 * the newest one is visible. Inserts do not wait.
 *
 * On PostgreSQL a row with a low id can become visible after a row with a higher id. So this reads the highest id, and
 * then waits for the transactions that hold the lock of an insert. An insert takes this lock before it takes an id, so
 * a transaction with a lower id either has ended or is waited for (docs/contribute/decisions/audit-chain.md, "Rows that
 * become visible late").
 */
export const settledAfter = (id: number): Effect.Effect<Settled, StorageFailed, Database> =>
  Effect.gen(function*() {
    const upto = (yield* lastRow)?.id ?? 0
    return upto <= id ? { upto: id, isSettled: true } : { upto, isSettled: yield* settled }
  })
