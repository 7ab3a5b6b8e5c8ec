import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { SessionInvalid, StepUpFailed } from "../../domain/OperatorError.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { Passwords } from "../../services/operators/Passwords.ts"
import * as users from "../../store/operators/Users.ts"
import type { Requester, SessionIdentity } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import * as limiter from "./LoginLimiter.ts"
import { lockedOut } from "./Notices.ts"

/**
 * Asks for the caller's own password before a change that a stolen session must not make. An attempt counts like a
 * sign-in. Answers the operator whose password was compared.
 */
export const stepUp = Effect.fnUntraced(function*(
  settings: SignInSettings,
  identity: SessionIdentity,
  password: Redacted.Redacted<string>,
  requester: Requester
) {
  const { userId, username } = identity
  const failed = emit("admin_step_up_failed", {
    username,
    client_ip: requester.client.ip,
    surface: requester.surface
  })
  const passwords = yield* Passwords
  const taken = yield* Effect.tapErrorTag(
    limiter.takeOf(settings, requester),
    "RateLimited",
    () => Effect.andThen(failed, lockedOut(settings, username, requester))
  )
  const user = yield* users.findById(userId)
  if (user?.status !== "active") return yield* new SessionInvalid()
  const verdict = yield* Effect.tapError(
    passwords.verify(Redacted.value(password), user.passwordHash, username),
    limiter.giveBackUncompared(taken)
  )
  if (verdict._tag === "Unreadable") yield* emit("admin_password_hash_unreadable", { username })
  if (verdict._tag !== "Right") return yield* Effect.andThen(failed, new StepUpFailed())
  yield* limiter.giveBack(taken)
  return user
}, (attempt) => Effect.uninterruptible(Effect.catchTag(attempt, "StorageFailed", limiter.uncounted)))
