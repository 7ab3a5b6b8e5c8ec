import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { isTotpCode, totpStep } from "../../../crypto/Totp.ts"
import {
  InvalidCode,
  InvalidCredentials,
  MfaNotEnrolled,
  MfaNotPending,
  MfaPending,
  SessionInvalid
} from "../../../domain/OperatorError.ts"
import { readRecoveryCode } from "../../../domain/RecoveryCode.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import * as audit from "../../../store/AuditRows.ts"
import * as recoveryCodes from "../../../store/operators/RecoveryCodes.ts"
import * as factors from "../../../store/operators/SecondFactors.ts"
import * as storedSessions from "../../../store/operators/SessionRows.ts"
import type { User } from "../../../store/operators/Users.ts"
import * as users from "../../../store/operators/Users.ts"
import { actorOf } from "../../Operator.ts"
import * as codes from "./Codes.ts"
import type { HalfIdentity, Requester } from "./Identity.ts"
import { operatorOf } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import * as limiter from "./LoginLimiter.ts"
import { credentialChanged } from "./Notices.ts"
import * as sessions from "./Sessions.ts"
import type { Active } from "./SignIn.ts"
import { identityOf, stamped, told } from "./SignIn.ts"

/* The second step of a sign-in: a code of the factor in force, or the enrolment of a required factor. */

/** What a valid code matched: a TOTP step or a recovery code. Each can be claimed only once. */
type Proof =
  | { readonly method: "totp"; readonly secret: Uint8Array; readonly step: number }
  | { readonly method: "recovery_code"; readonly id: string }

const userOf = Effect.fnUntraced(function*({ userId }: HalfIdentity) {
  const user = yield* users.findById(userId)
  return user?.status === "active" ? user : yield* new SessionInvalid()
})

/** Finds what a code matches. Nothing is claimed yet. */
const proofOf = Effect.fnUntraced(function*(
  user: User,
  secret: Uint8Array,
  { since, typed }: { readonly since: number; readonly typed: string }
) {
  const code = typed.replaceAll(/\s/g, "")
  if (isTotpCode(code)) {
    const step = totpStep(secret, code, yield* currentSeconds)
    return step === undefined ? undefined : { method: "totp", secret, step } satisfies Proof
  }
  const recovery = readRecoveryCode(typed)
  if (recovery === undefined) return undefined
  // If the form was sent twice, the other request may have used the code a moment ago. It is found nevertheless, so that
  // the end of the session decides, and not how far the other request is.
  const known = yield* recoveryCodes.matchable(user.id, since)
  const found = yield* (yield* Passwords).findCode(recovery, known, user.username)
  return found === undefined ? undefined : { method: "recovery_code", id: found.id } satisfies Proof
})

/** Claims the step or the recovery code that a code matched. Fails if it was claimed before. */
const claim = Effect.fnUntraced(function*({ id: userId }: User, proof: Proof, now: number) {
  const claimed = yield* proof.method === "totp"
    ? factors.claim({ id: userId, secret: proof.secret, step: proof.step })
    : recoveryCodes.consume({ id: proof.id, userId, now })
  if (claimed === undefined) return yield* new InvalidCode()
})

/** Replaces the session that lacks its factor with an active session, in the transaction that completes the sign-in. */
const completed = Effect.fnUntraced(function*(
  settings: SignInSettings,
  half: HalfIdentity,
  of: {
    readonly user: User
    readonly requester: Requester
    readonly now: number
    readonly draw: Effect.Success<typeof sessions.drawn>
  }
) {
  const isNewAddress = yield* Effect.catchTag(
    stamped(of.user, of.requester, of.now),
    "InvalidCredentials",
    () => new SessionInvalid()
  )
  const ended = yield* storedSessions.end(half.tokenHash, "pending_mfa")
  if (ended === undefined) return yield* new SessionInvalid()
  const facts = yield* sessions.begin(settings, of.draw, { ...of, isHalf: false })
  const active: Active = {
    _tag: "Active",
    token: Redacted.make(of.draw.token),
    identity: identityOf(of.user, facts, true),
    isNewAddress
  }
  return active
})

/** Refuses a code. This counts as a failed sign-in, so the answer is the same as for a wrong password. */
const refuse = (...of: Parameters<typeof codes.refused>) =>
  Effect.andThen(codes.refused(...of), Effect.fail(new InvalidCredentials()))

/** Completes a sign-in with a code of the authenticator, or with a recovery code. */
export const verify = Effect.fn("MfaSignIn.verify")(function*(
  settings: SignInSettings,
  half: HalfIdentity,
  code: string,
  requester: Requester
) {
  const user = yield* userOf(half)
  const secret = user.totpSecret ?? (yield* new MfaNotEnrolled())
  const counted = yield* codes.counted(settings, half, user, requester)
  const release = limiter.giveBack(counted.taken)
  const proof = yield* Effect.tapErrorTag(
    proofOf(user, secret, { since: half.createdAt, typed: code }),
    "RateLimited",
    limiter.giveBackUncompared(counted.taken)
  )
  if (proof === undefined) return yield* refuse(settings, half, counted, requester, "wrong_code")
  const now = yield* currentSeconds
  const draw = yield* sessions.drawn
  const passed = transaction(Effect.gen(function*() {
    // Every transaction that locks several rows locks the operator's row first.
    const active = yield* completed(settings, half, { user, requester, now, draw })
    yield* claim(user, proof, now)
    yield* release
    return { active, remaining: yield* recoveryCodes.remaining(user.id) }
  }))
  const { active, remaining } = yield* passed.pipe(
    // The code was right, but another request with the same code ended this session a moment ago.
    Effect.tapErrorTag("SessionInvalid", () => release),
    Effect.catchTag("InvalidCode", () => refuse(settings, half, counted, requester, "replayed"))
  )
  const { username } = user
  yield* emit("admin_mfa_verified", { username, method: proof.method })
  if (proof.method === "recovery_code") yield* emit("admin_mfa_recovery_code_used", { username, remaining })
  yield* told(user, requester, "verify")
  return active
}, (attempt) => Effect.uninterruptible(Effect.catchTag(attempt, "StorageFailed", limiter.uncounted)))

/** Begins the enrolment that a sign-in requires. An unconfirmed enrolment is replaced. */
export const beginEnrolment = Effect.fn("MfaSignIn.beginEnrolment")(function*(
  settings: SignInSettings,
  half: HalfIdentity
) {
  if (half.step !== "enrol") return yield* new MfaPending()
  const { enrolment, secret } = yield* codes.newSecret(settings, half.username)
  const now = yield* currentSeconds
  const begun = yield* factors.pend({ id: half.userId, pending: secret, inForce: undefined, now })
  return begun === undefined ? yield* new MfaPending() : enrolment
})

/** Returns whether a required enrolment has begun: its secret was shown, but its first code has not been given. */
export const isEnrolling = Effect.fn("MfaSignIn.isEnrolling")(function*(half: HalfIdentity) {
  return half.step === "enrol" && (yield* userOf(half)).totpPendingSecret !== undefined
})

/** Completes a sign-in with the first code of a new authenticator. Only this result contains the recovery codes. */
export const confirmEnrolment = Effect.fn("MfaSignIn.confirmEnrolment")(function*(
  settings: SignInSettings,
  half: HalfIdentity,
  code: string,
  requester: Requester
) {
  if (half.step !== "enrol") return yield* new MfaPending()
  const user = yield* userOf(half)
  const pending = user.totpPendingSecret ?? (yield* new MfaNotPending())
  const counted = yield* codes.counted(settings, half, user, requester)
  const release = limiter.giveBack(counted.taken)
  const now = yield* currentSeconds
  const step = totpStep(pending, code.replaceAll(/\s/g, ""), now)
  if (step === undefined) return yield* refuse(settings, half, counted, requester, "wrong_code")
  const made = yield* Effect.tapError(codes.newRecoveryCodes(user.username), () => release)
  const draw = yield* sessions.drawn
  const active = yield* transaction(Effect.gen(function*() {
    const confirmed = yield* factors.confirm({ id: user.id, pending, inForce: undefined, step, now })
    if (confirmed === undefined) return yield* new MfaNotPending()
    const active = yield* completed(settings, half, { user, requester, now, draw })
    const sessions_revoked = yield* storedSessions.endAllOf(user.id, active.identity.tokenHash)
    yield* recoveryCodes.replace({ userId: user.id, codes: made.stored, now })
    yield* release
    const actor = actorOf(operatorOf(half, requester))
    const detail = { target: user.username, sessions_revoked }
    yield* audit.insert({ event: "operator_totp_enrolled", ...actor, detail })
    yield* credentialChanged(operatorOf(half, requester), user, "second_factor_enabled")
    return active
  })).pipe(Effect.tapErrorTag(["SessionInvalid", "MfaNotPending"], () => release))
  yield* emit("admin_mfa_enrolled", { username: user.username, method: "totp" })
  yield* told(user, requester, "enrol")
  return { active, recoveryCodes: made.shown }
}, (attempt) => Effect.uninterruptible(Effect.catchTag(attempt, "StorageFailed", limiter.uncounted)))
