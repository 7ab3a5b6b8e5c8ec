import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { InvalidCredentials } from "../../../domain/OperatorError.ts"
import { isRoleUnknown, roleRead } from "../../../domain/OperatorRole.ts"
import { readUsername } from "../../../domain/Username.ts"
import { emit } from "../../../domain/words/Log.ts"
import { count } from "../../../domain/words/Series.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { Passwords } from "../../../services/operators/Passwords.ts"
import type { Verdict } from "../../../services/operators/Passwords.ts"
import type { User } from "../../../store/operators/Users.ts"
import * as users from "../../../store/operators/Users.ts"
import * as guesses from "./Guesses.ts"
import type { HalfIdentity, Requester, SessionIdentity, SessionToken } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"
import * as limiter from "./LoginLimiter.ts"
import { lockedOut, signedInFrom } from "./Notices.ts"
import * as sessions from "./Sessions.ts"

/** The name and password of a sign-in. */
export interface Credentials {
  readonly username: string
  readonly password: Redacted.Redacted<string>
}

/** A complete sign-in. */
export interface Active {
  readonly _tag: "Active"
  readonly token: SessionToken
  readonly identity: SessionIdentity
  /** Whether the operator has not signed in from this address recently. */
  readonly isNewAddress: boolean
}

/** A sign-in that lacks its second factor. */
export interface Pending {
  readonly _tag: "Pending"
  readonly token: SessionToken
  readonly identity: HalfIdentity
}

const mostKnownAddresses = 5

/**
 * Stores the time of a complete sign-in. Must run in the transaction of the sign-in. Fails if the operator is no longer
 * active.
 */
export const stamped = Effect.fnUntraced(function*(user: User, requester: Requester, now: number) {
  const { client } = requester
  const others = user.knownLoginIps.filter((address) => address !== client.ip)
  const known = client.ip === undefined ? others : [client.ip, ...others]
  const stamp = yield* users.signedIn(user.id, known.slice(0, mostKnownAddresses), now)
  if (stamp === undefined) return yield* new InvalidCredentials()
  const isNewAddress = client.ip !== undefined && !user.knownLoginIps.includes(client.ip)
  if (isNewAddress) yield* signedInFrom(user, requester)
  return isNewAddress
})

/** Returns the identity of a session that has just begun. */
export const identityOf = (
  user: User,
  facts: Effect.Success<ReturnType<typeof sessions.begin>>,
  totpEnabled: boolean
): SessionIdentity => ({
  kind: "session",
  userId: user.id,
  username: user.username,
  role: roleRead(user.role),
  totpEnabled,
  ...facts
})

/** Logs a complete sign-in. `step` says how the second factor was given, if the operator has a second factor. */
export const told = (
  user: User,
  { client, surface }: Requester,
  step: HalfIdentity["step"] | undefined
): Effect.Effect<void> =>
  Effect.andThen(
    isRoleUnknown(user.role) ? emit("admin_role_unknown", { username: user.username }) : Effect.void,
    Effect.andThen(
      count("acme_svc_sign_ins_total", { outcome: "signed_in" }),
      emit("admin_login_succeeded", { username: user.username, client_ip: client.ip, surface, step })
    )
  )

const failed = (
  { client, surface }: Requester,
  reason: "wrong_password" | "unknown_user" | "account_disabled" | "rate_limited" | "operator_rate_limited",
  username?: string
) =>
  Effect.andThen(
    count("acme_svc_sign_ins_total", { outcome: reason.endsWith("rate_limited") ? "limited" : "password_refused" }),
    emit("admin_login_failed", { username, client_ip: client.ip, surface, reason })
  )

/** Refuses a sign-in without giving a reason. The log has the reason, and has the name only if the operator exists. */
const refuse = (user: User | undefined, verdict: Verdict, requester: Requester) =>
  Effect.gen(function*() {
    if (verdict._tag === "Unreadable") {
      yield* emit("admin_password_hash_unreadable", { username: user?.username })
    }
    const reason = user === undefined
      ? "unknown_user"
      : user.status === "active"
      ? "wrong_password"
      : "account_disabled"
    yield* failed(requester, reason, user?.username)
    return yield* new InvalidCredentials()
  })

/**
 * Begins the session after the right password was given, if nothing has changed since the password was compared. The
 * new session replaces the session that came with the request. `replaced` is the name of the operator of that session.
 */
const admitted = Effect.fnUntraced(function*(
  settings: SignInSettings,
  user: User,
  of: {
    readonly renewed: string
    readonly requester: Requester
    readonly release: Effect.Effect<void, StorageFailed, Database>
  }
) {
  const now = yield* currentSeconds
  const draw = yield* sessions.drawn
  const token = Redacted.make(draw.token)
  const step = user.totpSecret !== undefined ? "verify" : settings.require_mfa ? "enrol" : undefined
  return yield* transaction(Effect.gen(function*() {
    const { id, passwordHash: verified, totpSecret } = user
    const held = yield* users.verified({ id, verified, renewed: of.renewed, totpSecret })
    if (held === undefined) return yield* new InvalidCredentials()
    const isNewAddress = step === undefined && (yield* stamped(user, of.requester, now))
    const begun = { user, requester: of.requester, now, isHalf: step !== undefined }
    const facts = yield* sessions.begin(settings, draw, begun)
    const replaced = yield* sessions.replaced(of.requester)
    yield* of.release
    if (step === undefined) {
      const active: Active = { _tag: "Active", token, identity: identityOf(user, facts, false), isNewAddress }
      return { signedIn: active, replaced }
    }
    const identity: HalfIdentity = { kind: "half", userId: id, username: user.username, step, ...facts }
    const pending: Pending = { _tag: "Pending", token, identity }
    return { signedIn: pending, replaced }
  }))
})

/**
 * Signs an operator in by name and password. The attempt is counted before the password is compared. Every failure
 * costs one hash and gets the same answer (docs/contribute/decisions/admin.md, "Sign-in"). An attempt that has begun is
 * completed and logged even if its client disconnects.
 */
export const signIn = Effect.fn("SignIn.signIn")(function*(
  settings: SignInSettings,
  { password, username }: Credentials,
  requester: Requester
) {
  const passwords = yield* Passwords
  const taken = yield* Effect.tapErrorTag(
    limiter.takeOf(settings, requester),
    "RateLimited",
    ({ isPassing = false }) =>
      Effect.andThen(
        failed(requester, "rate_limited"),
        isPassing ? Effect.void : lockedOut(settings, username, requester)
      )
  )
  const name = readUsername(username)
  const user = name === undefined ? undefined : yield* users.find(name)
  const known = user?.status === "active" ? user : undefined
  const guess = yield* Effect.tapErrorTag(
    guesses.take(user, username, requester),
    "RateLimited",
    () => Effect.andThen(failed(requester, "operator_rate_limited", user?.username), limiter.giveBack(taken))
  )
  const release = Effect.andThen(limiter.giveBack(taken), guesses.passed(guess))
  const given = Redacted.value(password)
  const verdict = yield* Effect.tapError(
    passwords.verify(given, known?.passwordHash),
    (refused) =>
      failed(requester, "rate_limited").pipe(
        Effect.andThen(guesses.giveBack(guess)),
        Effect.andThen(limiter.giveBackUncompared(taken)(refused))
      )
  )
  if (known === undefined || verdict._tag !== "Right") {
    if (user !== undefined) yield* guesses.failed(user, guess, requester)
    return yield* refuse(user, verdict, requester)
  }
  const renewed = verdict.isWeak
    // If the queue of hashes is full, the sign-in with a right password still succeeds. Then the hash is renewed at a
    // later sign-in.
    ? yield* Effect.orElseSucceed(passwords.hash(given, known.username), () => known.passwordHash)
    : known.passwordHash
  const { replaced, signedIn } = yield* admitted(settings, known, { renewed, requester, release })
  if (replaced !== undefined) yield* emit("admin_logout", { username: replaced, scope: "one", sessions: 1 })
  yield* signedIn._tag === "Active"
    ? told(known, requester, undefined)
    : emit("admin_login_mfa_pending", {
      username: known.username,
      client_ip: requester.client.ip,
      surface: requester.surface,
      step: signedIn.identity.step
    })
  return signedIn
}, (attempt) => Effect.uninterruptible(Effect.catchTag(attempt, "StorageFailed", limiter.uncounted)))
