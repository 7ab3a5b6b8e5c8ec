import { int, nullable, text } from "../sql/Column.ts"
import { lenient } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"

/* The jobs whose last attempt failed, grouped by their failures. */

const row = { kind: text(), lastError: nullable(text()), count: int, since: int }

// A job that waits for its next attempt has an error, even if its attempts are counted from zero again.
const waitingStatement = statement({
  name: "queue_troubled",
  params: { before: int, limit: int },
  row,
  sql: () =>
    `SELECT kind AS "kind", last_error AS "lastError", count(*) AS "count", min(created_at) AS "since" FROM jobs
     WHERE status = 'ready' AND last_error IS NOT NULL AND created_at <= :before
     GROUP BY kind, last_error ORDER BY count(*) DESC, kind, last_error LIMIT :limit`
})

const failedStatement = statement({
  name: "queue_failed",
  params: { limit: int },
  row,
  sql: () =>
    `SELECT kind AS "kind", last_error AS "lastError", count(*) AS "count", min(updated_at) AS "since" FROM jobs
     WHERE status = 'failed'
     GROUP BY kind, last_error ORDER BY count(*) DESC, kind, last_error LIMIT :limit`
})

/**
 * Returns the waiting jobs whose last attempt failed, by kind and failure, the most frequent first. Only jobs that were
 * created before an epoch second count. `since` is when the oldest was created.
 */
export const waiting = (of: { readonly before: number; readonly limit: number }) => lenient(waitingStatement, of)

/** Returns the failed jobs, by kind and failure, the most frequent first. `since` is when the first of them failed. */
export const failed = (limit: number) => lenient(failedStatement, { limit })
