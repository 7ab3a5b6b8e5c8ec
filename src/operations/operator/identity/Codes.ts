import * as Effect from "effect/Effect"
import { encodeBase32 } from "../../../crypto/Base32.ts"
import { Entropy } from "../../../crypto/Entropy.ts"
import { totp, totpSecretSize, totpUri } from "../../../crypto/Totp.ts"
import { isKnownAddress, knownMfaKey, mfaKey } from "../../../domain/LoginKey.ts"
import { SessionInvalid } from "../../../domain/OperatorError.ts"
import { recoveryCodeFrom, recoveryCodeSize, showRecoveryCode } from "../../../domain/RecoveryCode.ts"
import { emit } from "../../../domain/words/Log.ts"
import { count } from "../../../domain/words/Series.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import { hostOf } from "../../../settings/Installation.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import type { User } from "../../../store/operators/Users.ts"
import type { HalfIdentity, Requester, SessionIdentity } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import * as limiter from "./LoginLimiter.ts"
import { factorRefused, lockedOut } from "./Notices.ts"

/* The parts that every use of a second factor shares: how codes are counted and made, and how refusals are logged. */

const product = "ACME Service"
const recoveryCodeCount = 10

/** The data with which an authenticator is set up. They are shown only once. */
export interface Enrolment {
  /** The secret in Base32, for people who type it. */
  readonly secret: string
  readonly uri: string
  readonly algorithm: string
  readonly digits: number
  readonly period: number
}

/**
 * Makes a new secret, and the form in which it is shown. This form names the host of the panel, so that an
 * authenticator can distinguish installations.
 */
export const newSecret = Effect.fnUntraced(function*({ base_url }: Pick<SignInSettings, "base_url">, username: string) {
  const secret = yield* (yield* Entropy).bytes(totpSecretSize)
  const enrolment: Enrolment = {
    secret: encodeBase32(secret),
    uri: totpUri(`${product} ${hostOf(base_url)}`, username, secret),
    algorithm: totp.algorithm,
    digits: totp.digits,
    period: totp.period
  }
  return { secret, enrolment }
})

/**
 * Makes a new set of recovery codes for an operator. Returns the texts, which are shown once, and the rows to store.
 */
export const newRecoveryCodes = Effect.fnUntraced(function*(username: string) {
  const { bytes, uuid } = yield* Entropy
  const passwords = yield* Passwords
  const codes = yield* Effect.replicateEffect(Effect.map(bytes(recoveryCodeSize), recoveryCodeFrom), recoveryCodeCount)
  const hashes = yield* passwords.hashCodes(codes, username)
  return {
    shown: codes.map(showRecoveryCode),
    stored: yield* Effect.forEach(hashes, (hash) => Effect.map(uuid, (id) => ({ id, hash })))
  }
})

/**
 * A code that was counted. `isLast` means that no other code may be tried in this session. It is false for a session
 * without such a limit.
 */
export interface Counted {
  readonly taken: limiter.Counted
  readonly isLast: boolean
}

/** Why a code was refused. */
type Refusal = "wrong_code" | "replayed" | "attempts_exhausted" | "rate_limited"

const failed = (identity: HalfIdentity | SessionIdentity, { client }: Requester, reason: Refusal) =>
  Effect.andThen(
    count("acme_svc_sign_ins_total", { outcome: reason === "rate_limited" ? "limited" : "second_factor_refused" }),
    emit("admin_mfa_failed", { username: identity.username, client_ip: client.ip, reason })
  )

const keyOf = ({ id, knownLoginIps }: Pick<User, "id" | "knownLoginIps">, { client: { ip } }: Requester): string =>
  ip !== undefined && isKnownAddress(knownLoginIps, ip) ? knownMfaKey(id, ip) : mfaKey(id)

/**
 * Counts a code before it is compared. The code counts for its address, for its operator and, if the session lacks its
 * factor, also for the session. If one of the limits is reached, nothing is counted.
 */
export const counted = (
  settings: SignInSettings,
  identity: HalfIdentity | SessionIdentity,
  user: Pick<User, "id" | "knownLoginIps">,
  requester: Requester
) =>
  transaction(Effect.gen(function*() {
    const most = settings.login_max_attempts
    const { tokenHash } = identity
    const attempts = identity.kind === "half"
      ? yield* sessions.countAttempt({ tokenHash, state: "pending_mfa", most })
      : 0
    if (attempts === undefined) return yield* new SessionInvalid()
    const counted: Counted = {
      taken: [
        ...yield* limiter.takeOf(settings, requester),
        ...yield* limiter.take(settings, keyOf(user, requester))
      ],
      isLast: attempts >= most
    }
    return counted
  })).pipe(
    Effect.tapErrorTag("SessionInvalid", () => failed(identity, requester, "attempts_exhausted")),
    Effect.tapErrorTag(
      "RateLimited",
      () =>
        Effect.andThen(
          failed(identity, requester, "rate_limited"),
          lockedOut(settings, identity.username, requester)
        )
    ),
    Effect.catchTag("StorageFailed", limiter.uncounted)
  )

/**
 * Logs that a code was refused. If no other code may be tried, the sign-in ends. The operator is notified of the first
 * refused code.
 */
export const refused = Effect.fnUntraced(function*(
  settings: SignInSettings,
  identity: HalfIdentity | SessionIdentity,
  { isLast }: Counted,
  requester: Requester,
  reason: "wrong_code" | "replayed"
) {
  yield* failed(identity, requester, reason)
  if (isLast) {
    yield* sessions.end(identity.tokenHash, "pending_mfa")
    yield* failed(identity, requester, "attempts_exhausted")
  }
  if (identity.kind === "half") yield* factorRefused(settings, identity, requester)
})
