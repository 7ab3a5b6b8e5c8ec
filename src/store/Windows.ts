import * as Effect from "effect/Effect"
import { int, text } from "../engine/sql/Column.ts"
import { all, first } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

/*
 * Counts events under a key within a window of time, for all processes together. The first event opens the window. One
 * statement both decides and counts, so that concurrent callers together cannot exceed the limit.
 */

/** A table of windows. Its columns are `key`, `window_started_at` and a counter. */
interface Windows {
  readonly table: string
  readonly counter: string
  /** The word for one row in the names of the statements. */
  readonly noun: string
}

/** Returns the statements for a table of windows. */
export const windowsIn = ({ counter, noun, table }: Windows) => {
  // If a window begins in the future, it was opened by a process whose clock is ahead, and it counts as the current
  // window. Otherwise the two processes would keep ending each other's windows.
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
     * Counts one event, and returns the start of the window. If the window has reached the limit, counts nothing and
     * returns `undefined`.
     */
    take: ({ key, most, now, windowSeconds }: {
      readonly key: string
      readonly most: number
      readonly windowSeconds: number
      /** The current time in epoch seconds. */
      readonly now: number
    }) =>
      Effect.map(
        first(takeStatement, { key, most, now, ended: now - windowSeconds }),
        (row) => row?.windowStartedAt
      ),
    /**
     * Deletes up to `limit` windows that began between two epoch seconds, inclusive. Returns how many windows were
     * deleted.
     */
    sweep: (of: { readonly from: number; readonly upTo: number; readonly limit: number }) =>
      Effect.map(all(sweepStatement, of), (gone) => gone.length)
  }
}
