import { Effect } from "effect"
import type { Database, StorageFailed } from "../../kernel/sql/Database.ts"
import { inBatches } from "../../kernel/sql/Pages.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import * as loginAttempts from "../../store/operators/LoginAttempts.ts"
import * as sessions from "../../store/operators/Sessions.ts"
import type { SignInSettings } from "./LoginLimiter.ts"

/** Deletes sessions that have ended, and windows of sign-ins that are over. */
export const sweepSessions = (settings: SignInSettings): Effect.Effect<void, StorageFailed, Database> =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    const ended = yield* inBatches(1000, (limit) => sessions.sweep(now, limit))
    const over = now - settings.login_window_seconds
    const rows_removed = ended + (yield* inBatches(1000, (limit) => loginAttempts.sweep(over, limit)))
    yield* emit("admin_session_reaper_swept", { rows_removed })
  })
