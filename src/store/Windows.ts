import * as Effect from "effect/Effect"
import { int, text } from "../engine/sql/Column.ts"
import { all, first } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/*
 * Counts events under a key within a window of time, for all processes together. The first event opens the window. One
 * statement decides and counts, so that concurrent callers cannot pass the limit together.
 */

/** A table of windows. Its columns are `key`, `window_started_at` and a counter. */
interface Windows {
  readonly table: string
  readonly counter: string
  /** What one row stands for, used in the names of the statements. */
  readonly noun: string
}

/** The two statements over a table of windows. */
export const windowsIn = ({ counter, noun, table }: Windows) => {
  // A window that begins in the future belongs to a process whose clock is ahead. It counts as the current window.
  // Otherwise two processes would keep ending each other's windows.
  const isOver = "w.window_started_at <= :ended"
  const takeStatement = statement({
    name: `${noun}_take`,
    params: { key: text(), now: int, ended: int, most: int },
    row: { windowStartedAt: int },
    sql: () =>
      `INSERT INTO ${table} AS w (key, window_started_at, ${counter}) VALUES (:key, :now, 1)
      ON CONFLICT (key) DO UPDATE SET
        ${counter} = CASE WHEN ${isOver} THEN 1 ELSE w.${counter} + 1 END,
        window_started_at = CASE WHEN ${isOver} THEN excluded.window_started_at ELSE w.window_started_at END
      WHERE ${isOver} OR w.${counter} < :most
      RETURNING window_started_at AS "windowStartedAt"`
  })
  const sweepStatement = statement({
    name: `${noun}_sweep`,
    params: { from: int, upTo: int, limit: int },
    row: { key: text() },
    sql: () =>
      `DELETE FROM ${table} WHERE key IN
        (SELECT key FROM ${table} WHERE window_started_at >= :from AND window_started_at <= :upTo
         ORDER BY window_started_at LIMIT :limit)
      RETURNING key AS "key"`
  })
  return {
    /**
     * Counts one event. Returns the start of the window, or `undefined` if the window has reached the limit; then
     * nothing is counted.
     */
    take: ({ key, most, now, windowSeconds }: {
      readonly key: string
      readonly most: number
      readonly windowSeconds: number
      /** Epoch seconds. */
      readonly now: number
    }) =>
      Effect.map(
        first(takeStatement, { key, most, now, ended: now - windowSeconds }),
        (row) => row?.windowStartedAt
      ),
    /** Deletes up to `limit` windows that began between two epoch seconds, inclusive. Returns their number. */
    sweep: (of: { readonly from: number; readonly upTo: number; readonly limit: number }) =>
      Effect.map(all(sweepStatement, of), (gone) => gone.length)
  }
}
