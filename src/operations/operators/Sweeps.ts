import * as Effect from "effect/Effect"
import { clocks } from "../../kernel/queue/Clocks.ts"
import type { Database, StorageFailed } from "../../kernel/sql/Database.ts"
import { inBatches } from "../../kernel/sql/Pages.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import * as loginAttempts from "../../store/operators/LoginAttempts.ts"
import * as sessions from "../../store/operators/Sessions.ts"
import type { SignInSettings } from "./LoginLimiter.ts"

const latest = Number.MAX_SAFE_INTEGER

/**
 * Deletes sessions that have ended, and windows of sign-ins that are over. Deletes also what
 * lies further ahead than anything that begins now, because a wrong clock wrote it (docs/decisions/clocks.md, "Operators").
 */
export const sweepSessions = (settings: SignInSettings): Effect.Effect<void, StorageFailed, Database> =>
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
    let rows_removed = 0
    for (const { ahead, over, sweep } of [sessionsOf, windowsOf]) {
      for (const span of [{ from: 0, upTo: over }, { from: ahead, upTo: latest }]) {
        rows_removed += yield* inBatches(1000, (limit) => sweep({ ...span, limit }))
      }
    }
    yield* emit("admin_session_reaper_swept", { rows_removed })
  })
