import { Effect } from "effect"
import { int, text } from "../../kernel/sql/Column.ts"
import { all, first, run } from "../../kernel/sql/Database.ts"
import { statement } from "../../kernel/sql/Statement.ts"

/*
 * Counts recent failures, for all processes (docs/decisions/admin.md, "Login limiter"). One statement decides and
 * counts, so that concurrent attempts cannot pass the limit together.
 */

// A window that begins in the future belongs to a process whose clock is ahead. It counts as the current one: otherwise two
// processes would end each other's windows in turn.
const takeStatement = statement({
  name: "login_attempt_take",
  params: { key: text(), now: int, ended: int, most: int },
  row: { windowStartedAt: int },
  sql: () => {
    const isOver = "a.window_started_at <= :ended"
    return `INSERT INTO login_attempts AS a (key, window_started_at, attempts) VALUES (:key, :now, 1)
      ON CONFLICT (key) DO UPDATE SET
        attempts = CASE WHEN ${isOver} THEN 1 ELSE a.attempts + 1 END,
        window_started_at = CASE WHEN ${isOver} THEN excluded.window_started_at ELSE a.window_started_at END
      WHERE ${isOver} OR a.attempts < :most
      RETURNING window_started_at AS "windowStartedAt"`
  }
})

const windowStatement = statement({
  name: "login_attempt_window",
  params: { key: text() },
  row: { windowStartedAt: int },
  sql: () => `SELECT window_started_at AS "windowStartedAt" FROM login_attempts WHERE key = :key`
})

const giveBackStatement = statement({
  name: "login_attempt_give_back",
  params: { key: text(), windowStartedAt: int },
  row: {},
  sql: () =>
    `UPDATE login_attempts SET attempts = attempts - 1
     WHERE key = :key AND window_started_at = :windowStartedAt AND attempts > 0`
})

const sweepStatement = statement({
  name: "login_attempt_sweep",
  params: { from: int, upTo: int, limit: int },
  row: { key: text() },
  sql: () =>
    `DELETE FROM login_attempts WHERE key IN
       (SELECT key FROM login_attempts WHERE window_started_at >= :from AND window_started_at <= :upTo
        ORDER BY window_started_at LIMIT :limit)
     RETURNING key AS "key"`
})

/** An attempt that was counted. It is needed to give the attempt back. */
export interface Taken {
  readonly key: string
  readonly windowStartedAt: number
}

/** Counts an attempt under a key. Answers `undefined`, and counts nothing, if the window has had the most attempts. */
export const take = (of: {
  readonly key: string
  readonly most: number
  readonly windowSeconds: number
  readonly now: number
}) =>
  Effect.map(
    first(takeStatement, {
      key: of.key,
      now: of.now,
      ended: of.now - of.windowSeconds,
      most: of.most
    }),
    (row): Taken | undefined => row && { key: of.key, ...row }
  )

/** The begin of a key's window. */
export const windowOf = (key: string) => Effect.map(first(windowStatement, { key }), (row) => row?.windowStartedAt)

/** Gives an attempt back. If its window is over, there is nothing to give back. */
export const giveBack = (taken: Taken) => run(giveBackStatement, taken)

/** Deletes up to `limit` windows that began between two epoch seconds, inclusive. Answers how many. */
export const sweep = (of: { readonly from: number; readonly upTo: number; readonly limit: number }) =>
  Effect.map(all(sweepStatement, of), (gone) => gone.length)
