import * as Effect from "effect/Effect"
import { int, text } from "../../engine/sql/Column.ts"
import { first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { windowsIn } from "../Windows.ts"

/* Counts recent attempts, for all processes together (docs/decisions/admin.md, "Login limiter"). */

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

/** An attempt that was counted. It is passed to {@link giveBack} to take the count back. */
export interface Taken {
  readonly key: string
  readonly windowStartedAt: number
}

/** Counts an attempt under a key. If the window has reached the limit, counts nothing and returns `undefined`. */
export const take = (of: Parameters<typeof windows.take>[0]) =>
  Effect.map(
    windows.take(of),
    (windowStartedAt): Taken | undefined => windowStartedAt === undefined ? undefined : { key: of.key, windowStartedAt }
  )

/** Returns the start of the window of a key. */
export const windowOf = (key: string) => Effect.map(first(windowStatement, { key }), (row) => row?.windowStartedAt)

/** Takes back the count of an attempt. If the window of the attempt is over, nothing changes. */
export const giveBack = (taken: Taken) => run(giveBackStatement, taken)

/** Deletes windows of attempts. Returns how many windows were deleted. */
export const sweep = windows.sweep
