import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { sha256 } from "../../../crypto/Digest.ts"
import { Entropy } from "../../../crypto/Entropy.ts"
import { MfaPending, NoSuch, SessionExpired, SessionIdle, SessionInvalid } from "../../../domain/OperatorError.ts"
import { isRoleUnknown, roleRead } from "../../../domain/OperatorRole.ts"
import { emit } from "../../../domain/words/Log.ts"
import { transaction } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import * as audit from "../../../store/AuditRows.ts"
import type { FoundSession } from "../../../store/operators/SessionRows.ts"
import * as sessions from "../../../store/operators/SessionRows.ts"
import type { User } from "../../../store/operators/Users.ts"
import type { Operator } from "../../Operator.ts"
import { actorFields, actorOf } from "../../Operator.ts"
import { readForOperator } from "../OperatorReads.ts"
import type { HalfIdentity, Requester, SessionIdentity, SessionToken } from "./Identity.ts"
import { operatorOf } from "./Identity.ts"
import type { SignInSettings } from "./LoginLimiter.ts"

const touchSeconds = 60
const halfSeconds = 300
const tokenForm = /^[A-Za-z0-9_-]{43}$/
const nameForm = /^[0-9a-f]{16}$/

/** The random values of a new session. They are drawn before the transaction that begins the session. */
export const drawn = Effect.gen(function*() {
  const { token } = yield* Entropy
  return { token: yield* token, csrfToken: yield* token }
})

const lifeOf = ({ session_ttl_seconds }: SignInSettings, state: sessions.SessionState): number =>
  state === "pending_mfa" ? Math.min(halfSeconds, session_ttl_seconds) : session_ttl_seconds

/**
 * Begins a session in the caller's transaction. `isHalf` means that the session lacks its second factor. Returns what
 * identifies the session.
 */
export const begin = Effect.fnUntraced(function*(
  settings: SignInSettings,
  { csrfToken, token }: Effect.Success<typeof drawn>,
  of: { readonly user: User; readonly requester: Requester; readonly now: number; readonly isHalf: boolean }
) {
  const { isHalf, now, requester, user } = of
  const state = isHalf ? "pending_mfa" : "active"
  const facts = { tokenHash: sha256(token), csrfToken, createdAt: now, expiresAt: now + lifeOf(settings, state) }
  yield* sessions.insert({
    ...facts,
    userId: user.id,
    state,
    now,
    ip: requester.client.ip,
    userAgent: requester.client.user_agent?.slice(0, 256)
  })
  return facts
})

/**
 * Corrects the times of a session if a clock that was ahead of this process's clock wrote them. Either the session
 * would end later than a session that begins now, or its last use is in the future
 * (docs/contribute/decisions/clocks.md, "Operators").
 */
const corrected = Effect.fnUntraced(function*(found: FoundSession, now: number, latest: number) {
  if (found.expiresAt <= latest + touchSeconds && found.lastSeenAt <= now + touchSeconds) return found
  const times = { lastSeenAt: Math.min(found.lastSeenAt, now), expiresAt: Math.min(found.expiresAt, latest) }
  yield* sessions.correct({ tokenHash: found.tokenHash, ...times })
  return { ...found, ...times }
})

/** Finds the session of a token, if it has not ended and its operator is active. */
const live = Effect.fnUntraced(function*(settings: SignInSettings, token: SessionToken) {
  const given = Redacted.value(token)
  const found = tokenForm.test(given) ? yield* sessions.find(sha256(given)) : undefined
  if (found === undefined || found.status !== "active") return yield* new SessionInvalid()
  const now = yield* currentSeconds
  if (now >= found.expiresAt) return yield* new SessionExpired()
  // A last use in the far future was written by a wrong clock, so it is unknown for how long the session has been idle.
  if (Math.abs(now - found.lastSeenAt) >= settings.session_idle_timeout_seconds) return yield* new SessionIdle()
  return yield* corrected(found, now, now + lifeOf(settings, found.state))
})

const factsOf = ({ createdAt, csrfToken, expiresAt, tokenHash, userId, username }: FoundSession) => ({
  createdAt,
  userId,
  username,
  tokenHash,
  csrfToken,
  expiresAt
})

/**
 * Finds the session of a request. `touch` means that the request counts as a use, so that the session does not become
 * idle. The automatic refresh of a page in the panel does not count as a use.
 */
export const authenticate = Effect.fnUntraced(function*(
  settings: SignInSettings,
  token: SessionToken,
  { touch }: { readonly touch: boolean }
) {
  const found = yield* live(settings, token)
  if (found.state === "pending_mfa") return yield* new MfaPending()
  const now = yield* currentSeconds
  if (touch && now - found.lastSeenAt >= touchSeconds) {
    yield* sessions.touch(found.tokenHash, now, now - touchSeconds)
    // An unknown role is logged only when a use is stored. Otherwise it would be logged for every request.
    if (isRoleUnknown(found.role)) yield* emit("admin_role_unknown", { username: found.username })
  }
  const identity: SessionIdentity = {
    kind: "session",
    ...factsOf(found),
    role: roleRead(found.role),
    totpEnabled: found.isEnrolled === 1
  }
  return identity
})

/**
 * Finds the session of a request, if the session lacks its second factor, and the next step of that session. A complete
 * session is refused.
 */
export const authenticateHalf = Effect.fnUntraced(function*(settings: SignInSettings, token: SessionToken) {
  const found = yield* live(settings, token)
  if (found.state === "active") return yield* new SessionInvalid()
  const half: HalfIdentity = { kind: "half", ...factsOf(found), step: found.isEnrolled === 1 ? "verify" : "enrol" }
  return half
})

/**
 * Ends every session of an operator at that operator's request. An audit row records this, because somebody else may
 * have had one of the sessions.
 */
const endEveryOwn = ({ userId, username }: SessionIdentity, operator: Operator) =>
  transaction(Effect.tap(sessions.endAllOf(userId), (ended) =>
    audit.insert({
      event: "session_revoked",
      ...actorOf(operator),
      detail: { target: username, scope: "operator", sessions: ended }
    })))

/** Ends the session of the caller, or all sessions of the caller. */
export const signOut = Effect.fn("Sessions.signOut")(
  function*(identity: SessionIdentity, { all }: { readonly all: boolean }, requester: Requester) {
    const { tokenHash, username } = identity
    if (!all) {
      yield* sessions.end(tokenHash, "active")
      return yield* emit("admin_logout", { username, scope: "one", sessions: 1 })
    }
    const ended = yield* endEveryOwn(identity, operatorOf(identity, requester))
    yield* emit("admin_logout", { username, scope: "all", sessions: ended })
  },
  Effect.uninterruptible
)

/**
 * Ends the session that came with a sign-in, in the transaction that begins the new session. The browser replaces the
 * old cookie, so the operator could not sign out of the old session later. If the old session was complete, returns the
 * name of its operator.
 */
export const replaced = Effect.fnUntraced(function*({ held }: Requester) {
  const given = held === undefined ? "" : Redacted.value(held)
  const found = tokenForm.test(given) ? yield* sessions.find(sha256(given)) : undefined
  const ended = found === undefined ? undefined : yield* sessions.end(found.tokenHash, found.state)
  return ended === undefined || found?.state !== "active" ? undefined : found.username
})

/** Abandons a sign-in that lacks its second factor. */
export const abandonHalf = ({ tokenHash }: HalfIdentity) => Effect.asVoid(sessions.end(tokenHash, "pending_mfa"))

/** The page of a list. */
export interface Paging {
  readonly limit: number
  readonly offset: number
}

/** Returns the limits that distinguish live sessions from ended sessions. */
export const liveNow = (settings: SignInSettings) =>
  Effect.map(currentSeconds, (now) => ({ now, idleSince: now - settings.session_idle_timeout_seconds }))

/** Returns a page of an operator's live sessions, newest first, and the total number of these sessions. */
export const listOf = Effect.fn("Sessions.listOf")(function*(settings: SignInSettings, userId: string, paging: Paging) {
  const of = { ...yield* liveNow(settings), userId }
  return yield* readForOperator(Effect.all({ items: sessions.list({ ...of, ...paging }), total: sessions.count(of) }))
})

/** Returns the caller's own sessions. `current` is the name of the session that sent the request. */
export const listOwn = (settings: SignInSettings, identity: SessionIdentity, paging: Paging) =>
  Effect.map(
    listOf(settings, identity.userId, paging),
    (found) => ({ ...found, current: sessions.nameOf(identity) })
  )

/** Ends the session of an operator that has this name. Fails if there is no such session. */
export const endNamed = Effect.fn("Sessions.endNamed")(function*(userId: string, name: string) {
  const gone = nameForm.test(name) ? yield* sessions.endNamed(userId, name) : 0
  if (gone === 0) return yield* new NoSuch({ noun: "session", id: name })
  return gone
})

/** Ends one of the caller's own sessions. Returns whether this was the session that sent the request. */
export const revokeOwn = Effect.fn("Sessions.revokeOwn")(
  function*(identity: SessionIdentity, name: string, requester: Requester) {
    const operator = operatorOf(identity, requester)
    const gone = yield* transaction(Effect.tap(endNamed(identity.userId, name), (count) =>
      audit.insert({
        event: "session_revoked",
        ...actorOf(operator),
        detail: { target: identity.username, scope: "one", sessions: count }
      })))
    yield* emit("admin_session_revoked", { ...actorFields(operator), sessions: gone })
    return { isCurrent: name === sessions.nameOf(identity) }
  },
  Effect.uninterruptible
)
