import * as Effect from "effect/Effect"
import { addressKey } from "../../domain/LoginKey.ts"
import { Busy, RateLimited } from "../../domain/OperatorError.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import type { Config } from "../../settings/AppConfig.ts"
import type { Taken } from "../../store/operators/LoginAttempts.ts"
import * as loginAttempts from "../../store/operators/LoginAttempts.ts"
import type { Requester } from "./Identity.ts"

/*
 * Limits attempts to prove an identity. An attempt is counted before the proof is compared (docs/decisions/admin.md).
 */

/** The keys of `[admin]` that bound sign-ins and sessions. */
export type SignInSettings = Pick<
  Config["admin"],
  | "login_max_attempts"
  | "login_window_seconds"
  | "require_mfa"
  | "session_idle_timeout_seconds"
  | "session_ttl_seconds"
>

const busySeconds = 5

/** The key under which the attempts of a request are counted. */
export const keyOf = ({ client }: Requester): string => addressKey(client.ip ?? "unknown")

/** Counts an attempt. Refuses it if there were too many in the window. */
export const take = Effect.fnUntraced(function*(settings: SignInSettings, key: string) {
  const { login_max_attempts: most, login_window_seconds: windowSeconds } = settings
  const now = yield* currentSeconds
  const taken = yield* loginAttempts.take({ key, most, windowSeconds, now })
  if (taken !== undefined) return taken
  const startedAt = (yield* loginAttempts.windowOf(key)) ?? now
  const rest = Math.min(startedAt + windowSeconds - now, windowSeconds)
  return yield* new RateLimited({ retryAfter: Math.max(1, rest) })
})

/** Gives an attempt back: it succeeded, or its proof was never compared. */
export const giveBack = (taken: Taken) => loginAttempts.giveBack(taken)

/** If an attempt cannot be counted, the proof is not compared: `Effect.catchTag("StorageFailed", uncounted)`. */
export const uncounted = () => new Busy({ retryAfter: busySeconds })
