import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { StepUpFailed } from "../../../domain/OperatorError.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as passwordLinks from "../../../store/operators/PasswordLinkRows.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import * as users from "../../../store/operators/Users.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import * as guesses from "./Guesses.ts"
import type { Requester, SessionIdentity } from "./Identity.ts"
import { operatorOf } from "./Identity.ts"
import type { PasswordSettings } from "./NewPassword.ts"
import { accepted } from "./NewPassword.ts"
import { credentialChanged } from "./Notices.ts"
import { stepUp } from "./StepUp.ts"

/** Changes the caller's own password. All other sessions of the caller end. */
export const changePassword = Effect.fn("OwnAccount.changePassword")(function*(
  config: PasswordSettings,
  identity: SessionIdentity,
  passwords: { readonly current: Redacted.Redacted<string>; readonly chosen: Redacted.Redacted<string> },
  requester: Requester
) {
  const operator = operatorOf(identity, requester)
  const chosen = yield* Effect.fromResult(accepted(config, identity.username, passwords.chosen))
  const { passwordHash } = yield* stepUp(config.admin, identity, passwords.current, requester)
  const hash = yield* (yield* Passwords).hash(Redacted.value(chosen), identity.username)
  const now = yield* currentSeconds
  const ended = yield* transaction(Effect.gen(function*() {
    const user = yield* users.lock(identity.username)
    // The password was changed in the meantime, so the password that was compared is no longer in force.
    if (user?.status !== "active" || user.passwordHash !== passwordHash) return yield* new StepUpFailed()
    yield* users.setPassword(user.id, hash, now)
    yield* guesses.forget(user)
    yield* passwordLinks.forget(user.id)
    const ended = yield* sessions.endAllOf(user.id, identity.tokenHash)
    const detail = { target: user.username, sessions_revoked: ended }
    yield* audit.insert({ event: "operator_password_changed", ...actorOf(operator), detail })
    yield* credentialChanged(operator, user, "password")
    return ended
  }))
  yield* emit("admin_operator_password_changed", {
    ...actorFields(operator),
    target_username: identity.username,
    sessions: ended
  })
}, Effect.uninterruptible)

/** Changes the caller's own contact. If no new contact is given, the contact is removed. */
export const changeContact = Effect.fn("OwnAccount.changeContact")(function*(
  config: PasswordSettings,
  identity: SessionIdentity,
  change: { readonly password: Redacted.Redacted<string>; readonly contact: string | undefined },
  requester: Requester
) {
  const operator = operatorOf(identity, requester)
  const { contact } = change
  const user = yield* stepUp(config.admin, identity, change.password, requester)
  const now = yield* currentSeconds
  const detail = { target: identity.username }
  const changed = yield* audit.changing(
    users.setContact(user.id, contact, now),
    Effect.andThen(
      audit.insert({ event: "operator_contact_updated", ...actorOf(operator), detail }),
      credentialChanged(operator, user, "contact_address", contact)
    )
  )
  if (changed === undefined) return
  yield* emit("admin_operator_contact_changed", { ...actorFields(operator), target_username: identity.username })
}, Effect.uninterruptible)
