import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import { totpStep } from "../../../crypto/Totp.ts"
import {
  InvalidCode,
  MfaNotEnrolled,
  MfaNotPending,
  MfaRequired,
  SessionInvalid
} from "../../../domain/OperatorError.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as recoveryCodes from "../../../store/operators/RecoveryCodes.ts"
import * as factors from "../../../store/operators/SecondFactors.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import type { User } from "../../../store/operators/Users.ts"
import * as users from "../../../store/operators/Users.ts"
import type { Operator } from "../../Operator.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import * as codes from "./Codes.ts"
import type { Requester, SessionIdentity } from "./Identity.ts"
import { operatorOf } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import * as limiter from "./LoginLimiter.ts"
import { credentialChanged } from "./Notices.ts"
import { stepUp } from "./StepUp.ts"

/*
 * The caller's own second factor, in a complete session. Every change requires the password. Otherwise somebody with a
 * stolen session could enrol their own factor and lock the owner out.
 */

type Password = Redacted.Redacted<string>

const ownUser = Effect.fnUntraced(function*({ userId }: SessionIdentity) {
  const user = yield* users.findById(userId)
  return user?.status === "active" ? user : yield* new SessionInvalid()
})

/**
 * Returns the state of a second factor: whether a factor is in force, whether a factor is being enrolled, and how many
 * recovery codes are left.
 */
export const factorOf = (user: Pick<User, "id" | "totpPendingSecret" | "totpSecret">) =>
  Effect.map(recoveryCodes.remaining(user.id), (recoveryCodesRemaining) => ({
    totpEnabled: user.totpSecret !== undefined,
    enrolmentPending: user.totpPendingSecret !== undefined,
    recoveryCodesRemaining
  }))

/** Returns the state of the caller's own second factor. */
export const status = (identity: SessionIdentity) => Effect.flatMap(ownUser(identity), factorOf)

/**
 * Begins an enrolment. An earlier enrolment that was not confirmed is replaced. A factor in force stays in force until
 * the new factor is confirmed.
 */
export const beginEnrolment = Effect.fn("SecondFactor.beginEnrolment")(function*(
  settings: SignInSettings,
  identity: SessionIdentity,
  password: Password,
  requester: Requester
) {
  const user = yield* stepUp(settings, identity, password, requester)
  const { enrolment, secret } = yield* codes.newSecret(settings, user.username)
  const now = yield* currentSeconds
  const begun = yield* factors.pend({ id: user.id, pending: secret, inForce: user.totpSecret, now })
  return begun === undefined ? yield* new MfaNotPending() : enrolment
})

/** Puts the new factor in force. Only this result contains its recovery codes. All other sessions of the caller end. */
export const confirmEnrolment = Effect.fn("SecondFactor.confirmEnrolment")(function*(
  settings: SignInSettings,
  identity: SessionIdentity,
  code: string,
  requester: Requester
) {
  const user = yield* ownUser(identity)
  const pending = user.totpPendingSecret ?? (yield* new MfaNotPending())
  const counted = yield* codes.counted(settings, identity, user, requester)
  const release = limiter.giveBack(counted.taken)
  const now = yield* currentSeconds
  const step = totpStep(pending, code.replaceAll(/\s/g, ""), now)
  if (step === undefined) {
    yield* codes.refused(settings, identity, counted, requester, "wrong_code")
    return yield* new InvalidCode()
  }
  const made = yield* Effect.tapError(codes.newRecoveryCodes(user.username), () => release)
  yield* transaction(Effect.gen(function*() {
    const confirmed = yield* factors.confirm({ id: user.id, pending, inForce: user.totpSecret, step, now })
    if (confirmed === undefined) return yield* new MfaNotPending()
    const sessions_revoked = yield* sessions.endAllOf(user.id, identity.tokenHash)
    yield* recoveryCodes.replace({ userId: user.id, codes: made.stored, now })
    yield* release
    const actor = actorOf(operatorOf(identity, requester))
    const detail = { target: user.username, sessions_revoked }
    yield* audit.insert({ event: "operator_totp_enrolled", ...actor, detail })
    yield* credentialChanged(operatorOf(identity, requester), user, "second_factor_enabled")
  }))
  yield* emit("admin_mfa_enrolled", { username: user.username, method: "totp" })
  return made.shown
}, Effect.uninterruptible)

/**
 * Turns the caller's own factor off, if the configuration permits that. All other sessions of the caller end. If there
 * is no factor, nothing changes.
 */
export const disable = Effect.fn("SecondFactor.disable")(function*(
  settings: SignInSettings,
  identity: SessionIdentity,
  password: Password,
  requester: Requester
) {
  if (settings.require_mfa) return yield* new MfaRequired()
  const user = yield* stepUp(settings, identity, password, requester)
  if (user.totpSecret === undefined) return
  const ended = yield* taken(operatorOf(identity, requester), user, identity.tokenHash)
  if (ended !== undefined) yield* emit("admin_mfa_disabled", { username: user.username, method: "totp" })
}, Effect.uninterruptible)

/**
 * Removes a factor and its recovery codes. Ends all sessions except `butSession`, and returns how many sessions ended.
 * Returns undefined if there is no factor. If a transaction is open, joins that transaction; otherwise opens one.
 */
export const taken = (operator: Operator, user: User, butSession?: string) =>
  transaction(Effect.gen(function*() {
    const cleared = yield* factors.clear(user.id, yield* currentSeconds)
    if (cleared === undefined) return undefined
    const ended = yield* sessions.endAllOf(user.id, butSession)
    yield* recoveryCodes.removeAll(user.id)
    const detail = { target: user.username, sessions_revoked: ended }
    yield* audit.insert({ event: "operator_totp_disabled", ...actorOf(operator), detail })
    yield* credentialChanged(operator, user, "second_factor_disabled")
    return ended
  }))

/** Replaces the recovery codes of an operator whose factor is in force. */
export const renewCodes = Effect.fn("SecondFactor.renewCodes")(function*(operator: Operator, username: string) {
  const made = yield* codes.newRecoveryCodes(username)
  const now = yield* currentSeconds
  yield* transaction(Effect.gen(function*() {
    const user = yield* users.lock(username)
    if (user?.totpSecret === undefined) return yield* new MfaNotEnrolled()
    yield* recoveryCodes.replace({ userId: user.id, codes: made.stored, now })
    const detail = { target: username }
    yield* audit.insert({ event: "operator_recovery_codes_regenerated", ...actorOf(operator), detail })
    yield* credentialChanged(operator, user, "recovery_codes_regenerated")
  }))
  yield* emit("admin_mfa_recovery_codes_reissued", { ...actorFields(operator), target_username: username })
  return made.shown
}, Effect.uninterruptible)

/** Replaces the caller's own recovery codes. Only this result contains the new codes. */
export const reissueCodes = Effect.fn("SecondFactor.reissueCodes")(function*(
  settings: SignInSettings,
  identity: SessionIdentity,
  password: Password,
  requester: Requester
) {
  if ((yield* ownUser(identity)).totpSecret === undefined) return yield* new MfaNotEnrolled()
  const user = yield* stepUp(settings, identity, password, requester)
  return yield* renewCodes(operatorOf(identity, requester), user.username)
})
