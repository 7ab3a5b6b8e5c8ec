import * as Effect from "effect/Effect"
import { exhaustedWait, failureWaits, freeFailures } from "../../domain/LoginFailure.ts"
import { int, text } from "../../engine/sql/Column.ts"
import { all, first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/*
 * Counts wrong passwords in a row, for all processes together. One statement both decides and counts, so that
 * concurrent guesses together cannot exceed the limit.
 */

/** The SQL for the seconds that `waitAfter` returns, computed from the row `f`. */
const wait = `CASE WHEN f.failures >= :most THEN ${exhaustedWait} WHEN f.failures <= ${freeFailures} THEN 0 ${
  failureWaits.slice(0, -1).map((seconds, at) => `WHEN f.failures = ${freeFailures + 1 + at} THEN ${seconds}`).join(" ")
} ELSE ${failureWaits.at(-1)} END`

// If a failure is in the future, it was written by a process whose clock is ahead. It is treated as if it happened now,
// but a wait is counted from the stored time.
const takeStatement = statement({
  name: "login_failure_take",
  params: { key: text(), most: int, now: int },
  row: { failures: int },
  sql: () =>
    `INSERT INTO login_failures AS f (key, failures, last_failed_at) VALUES (:key, 1, :now)
     ON CONFLICT (key) DO UPDATE SET failures = f.failures + 1, last_failed_at = excluded.last_failed_at
     WHERE ${wait} = 0 OR f.last_failed_at + ${wait} <= excluded.last_failed_at
     RETURNING failures AS "failures"`
})

const findStatement = statement({
  name: "login_failure",
  params: { key: text() },
  row: { failures: int, lastFailedAt: int },
  sql: () => `SELECT failures AS "failures", last_failed_at AS "lastFailedAt" FROM login_failures WHERE key = :key`
})

const giveBackStatement = statement({
  name: "login_failure_give_back",
  params: { key: text() },
  row: {},
  sql: () => `UPDATE login_failures SET failures = failures - 1 WHERE key = :key AND failures > 0`
})

const clearStatement = statement({
  name: "login_failure_clear",
  params: { key: text() },
  row: {},
  sql: () => `DELETE FROM login_failures WHERE key = :key`
})

const sweepStatement = statement({
  name: "login_failure_sweep",
  params: { from: int, upTo: int, limit: int },
  row: { key: text() },
  sql: () =>
    `DELETE FROM login_failures WHERE key IN
       (SELECT key FROM login_failures WHERE last_failed_at >= :from AND last_failed_at <= :upTo
        ORDER BY last_failed_at LIMIT :limit)
     RETURNING key AS "key"`
})

/**
 * Counts a password as wrong before it is compared. Returns how many wrong passwords in a row there are now. If it is
 * too soon after the last failure, counts nothing and returns `undefined`. `now` is in epoch seconds.
 */
export const take = (of: { readonly key: string; readonly most: number; readonly now: number }) =>
  Effect.map(first(takeStatement, of), (row) => row?.failures)

/** Returns how many wrong passwords were counted under a key, and when the last one was counted. */
export const find = (key: string) => first(findStatement, { key })

/** Takes back the count of a password that was never compared. */
export const giveBack = (key: string) => run(giveBackStatement, { key })

/** Forgets the wrong passwords under a key, because the right password was given. */
export const clear = (key: string) => run(clearStatement, { key })

/**
 * Deletes up to `limit` rows whose last failure is between two epoch seconds, inclusive. Returns how many rows were
 * deleted.
 */
export const sweep = (of: { readonly from: number; readonly upTo: number; readonly limit: number }) =>
  Effect.map(all(sweepStatement, of), (gone) => gone.length)
