import * as Effect from "effect/Effect"
import { int, text } from "../../engine/sql/Column.ts"
import { first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { windowsIn } from "../Windows.ts"

/*
 * Counts recent failures, for all processes (docs/decisions/admin.md, "Login limiter").
 */

const windows = windowsIn({ table: "login_attempts", counter: "attempts", noun: "login_attempt" })

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

/** A counted attempt. {@link giveBack} needs it. */
export interface Taken {
  readonly key: string
  readonly windowStartedAt: number
}

/** Counts an attempt under a key. Returns `undefined`, and counts nothing, if the window has reached the limit. */
export const take = (of: Parameters<typeof windows.take>[0]) =>
  Effect.map(
    windows.take(of),
    (windowStartedAt): Taken | undefined => windowStartedAt === undefined ? undefined : { key: of.key, windowStartedAt }
  )

/** Returns the start of a key's window. */
export const windowOf = (key: string) => Effect.map(first(windowStatement, { key }), (row) => row?.windowStartedAt)

/** Gives an attempt back, so that it no longer counts. If its window is over, nothing changes. */
export const giveBack = (taken: Taken) => run(giveBackStatement, taken)

/** Deletes windows of attempts, and returns their number. */
export const sweep = windows.sweep
