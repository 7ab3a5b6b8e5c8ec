import * as Effect from "effect/Effect"
import type { OperatorStatus } from "../../domain/OperatorStatus.ts"
import { int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { all, first, lenient, run } from "../../engine/sql/Query.ts"
import type { Fragments } from "../../engine/sql/Statement.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

/** The state of a session. With a `pending_mfa` session, only the routes of the second factor may be used. */
export type SessionState = "pending_mfa" | "active"

const session = {
  tokenHash: text(),
  userId: uuid(),
  csrfToken: text(),
  state: text<SessionState>(),
  createdAt: int,
  expiresAt: int,
  lastSeenAt: int
}

const owner = { username: name(), status: text<OperatorStatus>(), role: nullable(text()) }
const found = { ...session, ...owner, isEnrolled: int }

const shown = {
  tokenHash: text(),
  state: text<SessionState>(),
  createdAt: int,
  expiresAt: int,
  lastSeenAt: int,
  createdIp: nullable(text()),
  userAgent: nullable(text())
}

const insertStatement = statement({
  name: "session_insert",
  params: {
    tokenHash: text(),
    userId: uuid(),
    csrfToken: text(),
    state: text<SessionState>(),
    now: int,
    expiresAt: int,
    ip: nullable(text()),
    userAgent: nullable(text())
  },
  row: {},
  sql: () =>
    `INSERT INTO admin_sessions (token_hash, user_id, csrf_token, state, mfa_attempts, created_at, expires_at,
       last_seen_at, created_ip, user_agent)
     VALUES (:tokenHash, :userId, :csrfToken, :state, 0, :now, :expiresAt, :now, :ip, :userAgent)`
})

const findStatement = statement({
  name: "session_find",
  params: { tokenHash: text() },
  row: found,
  sql: () =>
    `SELECT ${select(session, "s")}, ${select(owner, "u")},
       CASE WHEN u.totp_secret IS NULL THEN 0 ELSE 1 END AS "isEnrolled"
     FROM admin_sessions s JOIN admin_users u ON u.id = s.user_id WHERE s.token_hash = :tokenHash`
})

const touchStatement = statement({
  name: "session_touch",
  params: { tokenHash: text(), now: int, before: int },
  row: { tokenHash: text() },
  sql: () =>
    `UPDATE admin_sessions SET last_seen_at = :now WHERE token_hash = :tokenHash AND last_seen_at <= :before
     RETURNING token_hash AS "tokenHash"`
})

const correctStatement = statement({
  name: "session_correct",
  params: { tokenHash: text(), lastSeenAt: int, expiresAt: int },
  row: {},
  sql: () =>
    `UPDATE admin_sessions SET last_seen_at = :lastSeenAt, expires_at = :expiresAt WHERE token_hash = :tokenHash`
})

const attemptStatement = statement({
  name: "session_attempt",
  params: { tokenHash: text(), state: text<SessionState>(), most: int },
  row: { attempts: int },
  sql: () =>
    `UPDATE admin_sessions SET mfa_attempts = mfa_attempts + 1
     WHERE token_hash = :tokenHash AND state = :state AND mfa_attempts < :most
     RETURNING mfa_attempts AS "attempts"`
})

const giveBackStatement = statement({
  name: "session_attempt_give_back",
  params: { tokenHash: text() },
  row: {},
  sql: () =>
    `UPDATE admin_sessions SET mfa_attempts = mfa_attempts - 1 WHERE token_hash = :tokenHash AND mfa_attempts > 0`
})

const endStatement = statement({
  name: "session_end",
  params: { tokenHash: text(), state: text<SessionState>() },
  row: { tokenHash: text() },
  sql: () =>
    `DELETE FROM admin_sessions WHERE token_hash = :tokenHash AND state = :state RETURNING token_hash AS "tokenHash"`
})

const endAllOfStatement = statement({
  name: "session_end_all_of",
  params: { userId: uuid(), but: text() },
  row: { tokenHash: text() },
  sql: () =>
    `DELETE FROM admin_sessions WHERE user_id = :userId AND token_hash <> :but RETURNING token_hash AS "tokenHash"`
})

const endNamedStatement = statement({
  name: "session_end_named",
  params: { userId: uuid(), from: text(), until: text() },
  row: { tokenHash: text() },
  sql: ({ checked }) =>
    `DELETE FROM admin_sessions WHERE user_id = :userId AND ${checked("token_hash")} >= :from
       AND ${checked("token_hash")} < :until
     RETURNING token_hash AS "tokenHash"`
})

const endEveryStatement = statement({
  name: "session_end_every",
  params: {},
  row: { tokenHash: text() },
  sql: () => `DELETE FROM admin_sessions RETURNING token_hash AS "tokenHash"`
})

const live = { userId: uuid(), now: int, idleSince: int }
const isLive = ({ checked }: Fragments) =>
  `user_id = :userId AND ${checked("expires_at")} > :now AND last_seen_at > :idleSince`

const listStatement = statement({
  name: "session_list",
  params: { ...live, limit: int, offset: int },
  row: shown,
  sql: (f) =>
    `SELECT ${select(shown)} FROM admin_sessions WHERE ${isLive(f)}
     ORDER BY created_at DESC, token_hash DESC LIMIT :limit OFFSET :offset`
})

const countStatement = statement({
  name: "session_count",
  params: live,
  row: { total: int },
  sql: (f) => `SELECT count(*) AS "total" FROM admin_sessions WHERE ${isLive(f)}`
})

const everyone = { now: int, idleSince: int }
const ofEveryone = "s.expires_at > :now AND s.last_seen_at > :idleSince"
const shownOfEveryone = { ...shown, username: name() }

const listEveryStatement = statement({
  name: "session_list_every",
  params: { ...everyone, limit: int, offset: int },
  row: shownOfEveryone,
  sql: () =>
    `SELECT ${select(shown, "s")}, u.username AS "username"
     FROM admin_sessions s JOIN admin_users u ON u.id = s.user_id WHERE ${ofEveryone}
     ORDER BY s.created_at DESC, s.token_hash DESC LIMIT :limit OFFSET :offset`
})

const countEveryStatement = statement({
  name: "session_count_every",
  params: everyone,
  row: { total: int },
  sql: () => `SELECT count(*) AS "total" FROM admin_sessions s WHERE ${ofEveryone}`
})

const sweepStatement = statement({
  name: "session_sweep",
  params: { from: int, upTo: int, limit: int },
  row: { tokenHash: text() },
  sql: () =>
    `DELETE FROM admin_sessions WHERE token_hash IN
       (SELECT token_hash FROM admin_sessions WHERE expires_at >= :from AND expires_at <= :upTo
        ORDER BY expires_at LIMIT :limit)
     RETURNING token_hash AS "tokenHash"`
})

const lengths = Effect.map((gone: ReadonlyArray<unknown>) => gone.length)

/** A session, with the facts about its operator that every request needs. Times are epoch seconds. */
export type FoundSession = NonNullable<Effect.Success<ReturnType<typeof find>>>

/** A session as lists show it. */
export type ListedSession = Effect.Success<ReturnType<typeof list>>[number]

/** The number of characters of the token's hash that form the name of a session in lists. */
const nameLength = 16

/** Returns the name of a session. The name cannot be used to sign in. */
export const nameOf = ({ tokenHash }: { readonly tokenHash: string }): string => tokenHash.slice(0, nameLength)

/** Inserts a session. */
export const insert = (row: {
  readonly tokenHash: string
  readonly userId: string
  readonly csrfToken: string
  readonly state: SessionState
  readonly now: number
  readonly expiresAt: number
  readonly ip: string | undefined
  readonly userAgent: string | undefined
}) => run(insertStatement, row)

/** Finds the session of a token, even if the session is over. */
export const find = (tokenHash: string) => first(findStatement, { tokenHash })

/**
 * Stores the time of a use. Returns `undefined` if a use after `before` is already stored, or if the session no longer
 * exists.
 */
export const touch = (tokenHash: string, now: number, before: number) =>
  first(touchStatement, { tokenHash, now, before })

/** Corrects the times that were written to a session while a clock was wrong. */
export const correct = (of: { readonly tokenHash: string; readonly lastSeenAt: number; readonly expiresAt: number }) =>
  run(correctStatement, of)

/**
 * Counts an attempt before it is compared. In a pending session, the attempt is a code. In an active session, it is the
 * operator's password. Returns the number of attempts. Returns `undefined` if there were too many attempts, or if the
 * session is not in this state.
 */
export const countAttempt = (of: {
  readonly tokenHash: string
  readonly state: SessionState
  readonly most: number
}) => Effect.map(first(attemptStatement, of), (row) => row?.attempts)

/** Takes back the count of an attempt that succeeded, or that was never compared. */
export const giveBackAttempt = (tokenHash: string) => run(giveBackStatement, { tokenHash })

/** Ends a session if it is in this state. Returns `undefined` otherwise. */
export const end = (tokenHash: string, state: SessionState) => first(endStatement, { tokenHash, state })

/** Ends the sessions of an operator, except the given session. Returns how many sessions ended. */
export const endAllOf = (userId: string, but = "") => lengths(all(endAllOfStatement, { userId, but }))

/** Ends the session of an operator that has this name ({@link nameOf}). Returns how many sessions had this name. */
export const endNamed = (userId: string, name: string) =>
  lengths(all(endNamedStatement, { userId, from: name, until: `${name}g` })) // every hexadecimal digit sorts before g

/** Ends every session. Returns how many sessions ended. */
export const endEvery = lengths(all(endEveryStatement, {}))

/** The limits of live sessions. A session is live if it has not reached its end and is not idle. */
interface Live {
  readonly now: number
  readonly idleSince: number
}

/** Returns a page of an operator's live sessions, newest first. */
export const list = (of: Live & { readonly userId: string; readonly limit: number; readonly offset: number }) =>
  lenient(listStatement, of)

/** Counts the live sessions of an operator. */
export const count = (of: Live & { readonly userId: string }) =>
  Effect.map(first(countStatement, of), (row) => row?.total ?? 0)

/** Returns a page of the live sessions of all operators, newest first. Each session has the name of its operator. */
export const listEvery = (of: Live & { readonly limit: number; readonly offset: number }) =>
  lenient(listEveryStatement, of)

/** Counts all live sessions. */
export const countEvery = (of: Live) => Effect.map(first(countEveryStatement, of), (row) => row?.total ?? 0)

/**
 * Deletes up to `limit` sessions whose end is between two epoch seconds, inclusive. Returns how many sessions were
 * deleted.
 */
export const sweep = (of: { readonly from: number; readonly upTo: number; readonly limit: number }) =>
  lengths(all(sweepStatement, of))
