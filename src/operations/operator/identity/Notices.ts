import * as Effect from "effect/Effect"
import type { ToldOnce } from "../../../domain/LoginKey.ts"
import { toldKey } from "../../../domain/LoginKey.ts"
import type { NotificationFields, Occurrence } from "../../../domain/Notification.ts"
import { operatorScope } from "../../../domain/Notification.ts"
import { readUsername } from "../../../domain/Username.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { notify, whereWanted } from "../../../services/notify/Notifier.ts"
import * as loginAttempts from "../../../store/operators/LoginAttempts.ts"
import type { User } from "../../../store/operators/Users.ts"
import * as users from "../../../store/operators/Users.ts"
import type { Operator } from "../../Operator.ts"
import type { HalfIdentity, Requester, SessionIdentity } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"

/* Notifications to operators about their own account (docs/contribute/decisions/notifications.md). */

type SignIn = NotificationFields["admin_sign_in"]["outcome"]
type Change = NotificationFields["admin_credential_changed"]["change"]
type Addressed = Pick<User, "contactEmail" | "username">

const ofSignIn = (
  { contactEmail, username }: Addressed,
  { client }: Requester,
  outcome: SignIn,
  more: Pick<NotificationFields["admin_sign_in"], "admins" | "failures"> = {}
): Occurrence => ({
  event: "admin_sign_in",
  scope: operatorScope,
  fields: { username, recipient: contactEmail, outcome, client_ip: client.ip, user_agent: client.user_agent, ...more }
})

/** Notifies an operator and the admins that somebody is trying to get into the operator's account. */
const alarm = (user: Addressed, requester: Requester, outcome: SignIn, failures?: number) =>
  whereWanted(
    "admin_sign_in",
    operatorScope,
    transaction(
      Effect.flatMap(users.adminContacts, (admins) => notify(ofSignIn(user, requester, outcome, { admins, failures })))
    )
  )

/**
 * Notifies an operator of a sign-in from a new address, in the transaction of the sign-in. The operator's very first
 * sign-in is not reported.
 */
export const signedInFrom = (user: User, requester: Requester) =>
  user.knownLoginIps.length === 0 ? Effect.void : notify(ofSignIn(user, requester, "succeeded_from_new_address"))

/** Notifies an operator at most once in a window of `login_window_seconds`, and only if the operator exists. */
const tellOnce = (
  { login_window_seconds: windowSeconds }: SignInSettings,
  told: ToldOnce,
  found: Effect.Effect<Addressed & Pick<User, "id"> | undefined, StorageFailed, Database>,
  occurrence: (user: Addressed) => Occurrence
) =>
  whereWanted(
    "admin_sign_in",
    operatorScope,
    transaction(Effect.gen(function*() {
      const user = yield* found
      if (user === undefined) return
      const now = yield* currentSeconds
      const first = yield* loginAttempts.take({ key: toldKey(told, user.id), most: 1, windowSeconds, now })
      if (first !== undefined) yield* notify(occurrence(user))
    }))
  )

/**
 * Reports that a wrong code followed the right password, because somebody else may know the password. Only the first
 * wrong code of a window is reported.
 */
export const factorRefused = (settings: SignInSettings, { userId }: HalfIdentity, requester: Requester) =>
  tellOnce(settings, "code", users.findById(userId), (user) => ofSignIn(user, requester, "second_factor_refused"))

/**
 * Reports that a wrong password was given in a session, because somebody else may have the session. Only the first
 * wrong password of a window is reported.
 */
export const stepUpFailed = (settings: SignInSettings, { userId }: SessionIdentity, requester: Requester) =>
  tellOnce(settings, "step_up", users.findById(userId), (user) => ofSignIn(user, requester, "step_up_failed"))

/**
 * Reports that a session was ended because a wrong password was given in it too often. Somebody else may have the
 * session.
 */
export const stepUpRefused = (user: Addressed, requester: Requester) => alarm(user, requester, "step_up_refused")

/** Reports how many wrong passwords in a row were given for an operator. */
export const guessed = (user: Addressed, requester: Requester, failures: number) =>
  alarm(user, requester, "password_guessed", failures)

/**
 * Reports that no attempts are left for an operator. This is reported once in a window, and only if the operator
 * exists.
 */
export const lockedOut = (settings: SignInSettings, typed: string, requester: Requester) => {
  const username = readUsername(typed)
  const found = username === undefined ? Effect.undefined : users.findShown(username)
  return tellOnce(settings, "lockout", found, (user) => ofSignIn(user, requester, "locked_out"))
}

/**
 * Reports that credentials were changed, in the transaction of the change. `user` is the operator before the change.
 */
export const credentialChanged = (operator: Operator, user: Addressed, change: Change, contact = user.contactEmail) =>
  notify({
    event: "admin_credential_changed",
    scope: operatorScope,
    fields: {
      username: user.username,
      recipient: contact,
      change,
      by_self: operator.kind === "admin" && operator.id === user.username,
      previous_recipient: change === "contact_address" ? user.contactEmail : undefined,
      client_ip: operator.client?.ip,
      user_agent: operator.client?.user_agent
    }
  })
