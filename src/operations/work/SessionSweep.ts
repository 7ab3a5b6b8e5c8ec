import * as Effect from "effect/Effect"
import { linkSeconds } from "../../domain/PasswordLink.ts"
import { emit } from "../../domain/words/Log.ts"
import { clocks } from "../../engine/queue/Clocks.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { inBatches } from "../../engine/sql/Pages.ts"
import type { Config } from "../../settings/AppConfig.ts"
import * as loginAttempts from "../../store/operators/LoginAttempts.ts"
import * as loginFailures from "../../store/operators/LoginFailures.ts"
import * as passwordLinks from "../../store/operators/PasswordLinkRows.ts"
import * as sessions from "../../store/operators/SessionRows.ts"

const latest = Number.MAX_SAFE_INTEGER

/**
 * If there was no wrong password for an operator or a name for this number of seconds (thirty days), the earlier wrong
 * passwords are forgotten.
 */
const quietSeconds = 30 * 86_400

/** A failure that is further in the future than this number of seconds was written by a wrong clock. */
const aheadSeconds = 3600

/** The settings that say how long sessions and windows of sign-ins last. */
type Lifetimes = Pick<
  Config["admin"],
  "login_window_seconds" | "session_idle_timeout_seconds" | "session_ttl_seconds"
>

/**
 * Deletes ended sessions, old windows of sign-ins, old series of wrong passwords, and ended password links. Also
 * deletes rows whose times are further in the future than the times of anything that begins now, because a wrong clock
 * wrote these times (docs/contribute/decisions/clocks.md, "Operators").
 */
export const sweepSessions = (settings: Lifetimes): Effect.Effect<void, StorageFailed, Database> =>
  Effect.gen(function*() {
    const { earlier, later } = yield* clocks
    const { login_window_seconds, session_idle_timeout_seconds, session_ttl_seconds } = settings
    const sessionsOf = {
      sweep: sessions.sweep,
      over: earlier,
      ahead: later + session_ttl_seconds + session_idle_timeout_seconds
    }
    const windowsOf = {
      sweep: loginAttempts.sweep,
      over: earlier - login_window_seconds,
      ahead: later + login_window_seconds + 1
    }
    const failuresOf = {
      sweep: loginFailures.sweep,
      over: earlier - quietSeconds,
      ahead: later + aheadSeconds
    }
    const linksOf = { sweep: passwordLinks.sweep, over: earlier, ahead: later + linkSeconds + aheadSeconds }
    let rows_removed = 0
    for (const { ahead, over, sweep } of [sessionsOf, windowsOf, failuresOf, linksOf]) {
      for (const span of [{ from: 0, upTo: over }, { from: ahead, upTo: latest }]) {
        rows_removed += yield* inBatches(1000, (limit) => sweep({ ...span, limit }))
      }
    }
    yield* emit("admin_session_reaper_swept", { rows_removed })
  })
