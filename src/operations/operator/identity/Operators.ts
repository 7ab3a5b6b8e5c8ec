import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { Entropy } from "../../../crypto/Entropy.ts"
import { MfaNotEnrolled, NameTaken, SelfTarget } from "../../../domain/OperatorError.ts"
import type { OperatorRole } from "../../../domain/OperatorRole.ts"
import type { OperatorStatus } from "../../../domain/OperatorStatus.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as passwordLinks from "../../../store/operators/PasswordLinkRows.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import * as users from "../../../store/operators/Users.ts"
import type { AtKeyboard, Operator } from "../../Operator.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import { readForOperator } from "../OperatorReads.ts"
import * as guesses from "./Guesses.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import type { PasswordSettings } from "./NewPassword.ts"
import { hashNew } from "./NewPassword.ts"
import { credentialChanged } from "./Notices.ts"
import { changing, isSelf, keepAnAdmin, named } from "./OperatorChange.ts"
import * as secondFactor from "./SecondFactor.ts"
import type { Paging } from "./Sessions.ts"
import { liveNow } from "./Sessions.ts"

/* Lets admins and the command line see and change operators (docs/contribute/decisions/admin.md, "Operators"). */

/** Returns a page of operators, sorted by name, and the total number of operators. */
export const list = (
  filters: { readonly status: OperatorStatus | undefined; readonly role: OperatorRole | undefined },
  paging: Paging
) => readForOperator(Effect.all({ items: users.list({ ...filters, ...paging }), total: users.count(filters) }))

/** Returns operators whose name contains a text, sorted by name. */
export const containing = (text: string, limit: number) => readForOperator(users.containing(text.toLowerCase(), limit))

/**
 * Returns an operator, with the state of the second factor and the number of live sessions. The result contains nothing
 * that can be used to sign in.
 */
export const show = Effect.fn("Operators.show")(function*(settings: SignInSettings, username: string) {
  const user = yield* named(username)
  const { passwordHash: _, totpLastStep: _1, totpPendingSecret: _2, totpSecret: _3, ...shown } = user
  const factor = yield* secondFactor.factorOf(user)
  const activeSessions = yield* sessions.count({ ...yield* liveNow(settings), userId: user.id })
  return { ...shown, ...factor, activeSessions }
})

/** The result of {@link show}. */
export type ShownOperator = Effect.Success<ReturnType<typeof show>>

/** Disables an operator. The operator's sessions end, and their tokens are refused. A second call changes nothing. */
export const disable = Effect.fn("Operators.disable")(function*(operator: Operator, username: string) {
  if (isSelf(operator, username)) return yield* new SelfTarget()
  const now = yield* currentSeconds
  const done = yield* changing(operator, username, (target, admins) =>
    Effect.gen(function*() {
      if (target.status === "disabled") return undefined
      yield* keepAnAdmin(target, admins)
      yield* users.setStatus(target.id, "disabled", now)
      const ended = yield* sessions.endAllOf(target.id)
      const detail = { target: target.username, sessions_revoked: ended }
      yield* audit.insert({ event: "operator_disabled", ...actorOf(operator), detail })
      return { target_username: target.username, sessions: ended }
    }))
  if (done !== undefined) yield* emit("admin_operator_disabled", { ...actorFields(operator), ...done })
}, Effect.uninterruptible)

/** Lets a disabled operator sign in again. A second call changes nothing. */
export const enable = Effect.fn("Operators.enable")(function*(operator: Operator, username: string) {
  const now = yield* currentSeconds
  const done = yield* changing(operator, username, (target) =>
    Effect.gen(function*() {
      if ((yield* users.setStatus(target.id, "active", now)) === undefined) return undefined
      const detail = { target: target.username }
      yield* audit.insert({ event: "operator_enabled", ...actorOf(operator), detail })
      return { target_username: target.username }
    }))
  if (done !== undefined) yield* emit("admin_operator_enabled", { ...actorFields(operator), ...done })
}, Effect.uninterruptible)

/**
 * Changes the role of an operator. The operator's sessions end, and from then on their tokens permit at most the new
 * role. If the role is the same as before, nothing changes.
 */
export const setRole = Effect.fn("Operators.setRole")(
  function*(operator: Operator, username: string, role: OperatorRole) {
    if (isSelf(operator, username)) return yield* new SelfTarget()
    const now = yield* currentSeconds
    const done = yield* changing(operator, username, (target, admins) =>
      Effect.gen(function*() {
        // An absent role means admin, and stays absent. An unknown role is treated as viewer, but storing viewer in its
        // place is a change.
        if (target.role === role || (target.role === undefined && role === "admin")) return undefined
        // If the operator is to become an admin, the operator is not yet an admin, and so cannot be the last admin.
        yield* keepAnAdmin(target, admins)
        yield* users.setRole(target.id, role, now)
        const ended = yield* sessions.endAllOf(target.id)
        const roles = { before: target.role ?? "admin", after: role }
        const detail = { target: target.username, ...roles, sessions_revoked: ended }
        yield* audit.insert({ event: "operator_role_changed", ...actorOf(operator), detail })
        return { target_username: target.username, role, sessions: ended }
      }))
    if (done !== undefined) yield* emit("admin_operator_role_changed", { ...actorFields(operator), ...done })
  },
  Effect.uninterruptible
)

/** Changes the contact of an operator. If no new contact is given, the contact is removed. */
export const setContact = Effect.fn("Operators.setContact")(function*(
  operator: Operator,
  username: string,
  contact: string | undefined
) {
  const now = yield* currentSeconds
  const done = yield* changing(operator, username, (target) =>
    Effect.gen(function*() {
      if ((yield* users.setContact(target.id, contact, now)) === undefined) return undefined
      const detail = { target: target.username }
      yield* audit.insert({ event: "operator_contact_updated", ...actorOf(operator), detail })
      yield* credentialChanged(operator, target, "contact_address", contact)
      return { target_username: target.username }
    }))
  if (done !== undefined) yield* emit("admin_operator_contact_changed", { ...actorFields(operator), ...done })
}, Effect.uninterruptible)

/**
 * Removes an operator's second factor, and an unconfirmed enrolment. The operator's sessions end. Returns whether there
 * was anything to remove.
 */
export const resetTotp = Effect.fn("Operators.resetTotp")(function*(operator: Operator, username: string) {
  if (isSelf(operator, username)) return yield* new SelfTarget()
  const done = yield* changing(
    operator,
    username,
    (target) =>
      Effect.map(
        secondFactor.taken(operator, target),
        (sessions) => sessions === undefined ? undefined : { target_username: target.username, sessions }
      )
  )
  if (done !== undefined) yield* emit("admin_operator_totp_reset", { ...actorFields(operator), ...done })
  return done !== undefined
}, Effect.uninterruptible)

/** Returns the state of an operator's second factor, for the command line. */
export const totpStatus = (username: string) => Effect.flatMap(named(username), secondFactor.factorOf)

/** Makes a new set of recovery codes for an operator. Only this result contains the codes. */
export const renewCodes = Effect.fn("Operators.renewCodes")(function*(operator: AtKeyboard, username: string) {
  const user = yield* named(username)
  if (user.totpSecret === undefined) return yield* new MfaNotEnrolled()
  return yield* secondFactor.renewCodes(operator, user.username)
})

/** A new operator whom the command line creates. */
export interface NewOperator {
  /** The name in its stored form. */
  readonly username: string
  readonly password: Redacted.Redacted<string>
  /** The role. If it is undefined, the first operator becomes an admin and every other operator a viewer. */
  readonly role: OperatorRole | undefined
  readonly contact: string | undefined
  /** Whether nobody knows the password, so that the next start of the service makes a link. */
  readonly needsLink?: boolean
}

/** Creates an operator. Only the command line calls this function: there, access to the database is the credential. */
export const create = Effect.fn("Operators.create")(function*(
  config: PasswordSettings,
  operator: AtKeyboard,
  { contact, needsLink = false, password, role: asked, username }: NewOperator
) {
  const passwordHash = yield* hashNew(config, username, password)
  const { uuid } = yield* Entropy
  const id = yield* uuid
  const now = yield* currentSeconds
  const role = yield* transaction(Effect.gen(function*() {
    const isFirst = (yield* users.count({ status: undefined, role: undefined })) === 0
    const role = asked ?? (isFirst ? "admin" : "viewer")
    const made = yield* users.insert({ id, username, passwordHash, role, contact, now })
    if (made === undefined) return yield* new NameTaken({ name: username })
    if (needsLink) yield* passwordLinks.owe(id)
    yield* audit.insert({ event: "operator_created", ...actorOf(operator), detail: { target: username, role } })
    return role
  }))
  yield* emit("admin_operator_created", { ...actorFields(operator), target_username: username, role })
  return { username, role }
}, Effect.uninterruptible)

/** Sets an operator's password, and ends the operator's sessions. Only the command line calls this function. */
export const setPassword = Effect.fn("Operators.setPassword")(function*(
  config: PasswordSettings,
  operator: AtKeyboard,
  username: string,
  password: Redacted.Redacted<string>
) {
  const { username: name } = yield* named(username)
  const hash = yield* hashNew(config, name, password)
  const now = yield* currentSeconds
  const done = yield* changing(operator, name, (target) =>
    Effect.gen(function*() {
      yield* users.setPassword(target.id, hash, now)
      yield* guesses.forget(target)
      yield* passwordLinks.forget(target.id)
      const ended = yield* sessions.endAllOf(target.id)
      const detail = { target: target.username, sessions_revoked: ended }
      yield* audit.insert({ event: "operator_password_changed", ...actorOf(operator), detail })
      yield* credentialChanged(operator, target, "password")
      return { target_username: target.username, sessions: ended }
    }))
  yield* emit("admin_operator_password_changed", { ...actorFields(operator), ...done })
  return done.sessions
}, Effect.uninterruptible)

/** Refuses whatever {@link remove} would refuse. Commands call this function before they ask for confirmation. */
export const previewRemoval = (operator: AtKeyboard, username: string) =>
  changing(operator, username, (target, admins) => Effect.as(keepAnAdmin(target, admins), target.username))

/**
 * Deletes an operator with their sessions, codes and tokens. Their rows in the audit trail remain. Only the command
 * line calls this function.
 */
export const remove = Effect.fn("Operators.remove")(function*(operator: AtKeyboard, username: string) {
  const target_username = yield* changing(operator, username, (target, admins) =>
    Effect.gen(function*() {
      yield* keepAnAdmin(target, admins)
      yield* guesses.forget(target)
      const ended = yield* sessions.endAllOf(target.id)
      yield* users.remove(target.id)
      const detail = { target: target.username, role: target.role ?? "admin", sessions_revoked: ended }
      yield* audit.insert({ event: "operator_deleted", ...actorOf(operator), detail })
      return target.username
    }))
  yield* emit("admin_operator_deleted", { ...actorFields(operator), target_username })
}, Effect.uninterruptible)
