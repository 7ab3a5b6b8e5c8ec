import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { SessionInvalid, StepUpFailed } from "../../../domain/OperatorError.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import type { User } from "../../../store/operators/Users.ts"
import * as users from "../../../store/operators/Users.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import type { Requester, SessionIdentity } from "./Identity.ts"
import { operatorOf } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import * as limiter from "./LoginLimiter.ts"
import { lockedOut, stepUpFailed, stepUpRefused } from "./Notices.ts"

/** How many wrong passwords may be given in a session during its lifetime. */
const mostWrong = 5

/** Ends a session in which the last allowed wrong password was given. */
const ended = Effect.fnUntraced(function*(identity: SessionIdentity, user: User, requester: Requester) {
  const operator = operatorOf(identity, requester)
  const gone = yield* transaction(
    Effect.tap(
      sessions.end(identity.tokenHash, "active"),
      (session) =>
        session === undefined ? Effect.void : audit.insert({
          event: "session_revoked",
          ...actorOf(operator),
          detail: { target: identity.username, scope: "one", sessions: 1 }
        })
    )
  )
  if (gone === undefined) return
  yield* emit("admin_session_revoked", { ...actorFields(operator), sessions: 1 })
  yield* stepUpRefused(user, requester)
})

/**
 * Checks the caller's own password before a change that must not be possible with a stolen session. An attempt counts
 * like a sign-in from the same address. It also counts for the session, which ends at the fifth wrong password
 * (docs/contribute/decisions/admin.md, "Guesses"). Returns the operator whose password was compared.
 */
export const stepUp = Effect.fnUntraced(function*(
  settings: SignInSettings,
  identity: SessionIdentity,
  password: Redacted.Redacted<string>,
  requester: Requester
) {
  const { tokenHash, userId, username } = identity
  const failed = emit("admin_step_up_failed", {
    username,
    client_ip: requester.client.ip,
    surface: requester.surface
  })
  const passwords = yield* Passwords
  const user = yield* users.findById(userId)
  if (user?.status !== "active") return yield* new SessionInvalid()
  const taken = yield* Effect.tapErrorTag(
    limiter.takeOf(settings, requester),
    "RateLimited",
    ({ isPassing = false }) =>
      Effect.andThen(failed, isPassing ? Effect.void : lockedOut(settings, username, requester))
  )
  const attempts = yield* sessions.countAttempt({ tokenHash, state: "active", most: mostWrong })
  if (attempts === undefined) return yield* Effect.andThen(limiter.giveBack(taken), new SessionInvalid())
  const verdict = yield* Effect.tapError(
    passwords.verify(Redacted.value(password), user.passwordHash, username),
    (refused) => Effect.andThen(sessions.giveBackAttempt(tokenHash), limiter.giveBackUncompared(taken)(refused))
  )
  if (verdict._tag === "Unreadable") yield* emit("admin_password_hash_unreadable", { username })
  if (verdict._tag !== "Right") {
    yield* failed
    yield* stepUpFailed(settings, identity, requester)
    if (attempts >= mostWrong) yield* ended(identity, user, requester)
    return yield* new StepUpFailed()
  }
  yield* limiter.giveBack(taken)
  yield* sessions.giveBackAttempt(tokenHash)
  return user
}, (attempt) => Effect.uninterruptible(Effect.catchTag(attempt, "StorageFailed", limiter.uncounted)))
