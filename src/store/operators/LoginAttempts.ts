import * as Effect from "effect/Effect"
import { int, nullable, text } from "../../engine/sql/Column.ts"
import { first, lenientFirst, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"
import { windowsIn } from "../Windows.ts"

/* Counts recent attempts, for all processes together (docs/contribute/decisions/admin.md, "Login limiter"). */

const windows = windowsIn({ table: "login_attempts", counter: "attempts", noun: "login_attempt" })

const windowStatement = statement({
  name: "login_attempt_window",
  params: { key: text() },
  row: { windowStartedAt: int },
  sql: () => `SELECT window_started_at AS "windowStartedAt" FROM login_attempts WHERE key = :key`
})

// Attempts with codes are counted under keys that begin with `mfa:`, which sort between `mfa:` and `mfa;`.
const codesStatement = statement({
  name: "login_attempt_codes",
  params: { since: int, least: int },
  row: { attempts: nullable(int), since: nullable(int) },
  sql: () =>
    `SELECT sum(attempts) AS "attempts", min(window_started_at) AS "since" FROM login_attempts
     WHERE window_started_at >= :since AND attempts >= :least AND key >= 'mfa:' AND key < 'mfa;'`
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

/**
 * Returns how many wrong codes were entered since an epoch second, where at least `least` were entered in one window, and
 * when the first such window began.
 */
export const wrongCodes = (of: { readonly since: number; readonly least: number }) =>
  Effect.map(lenientFirst(codesStatement, of), (row) => ({ count: row?.attempts ?? 0, since: row?.since }))

/** Takes back the count of an attempt. If the window of the attempt is over, nothing changes. */
export const giveBack = (taken: Taken) => run(giveBackStatement, taken)

/** Deletes windows of attempts. Returns how many windows were deleted. */
export const sweep = windows.sweep
