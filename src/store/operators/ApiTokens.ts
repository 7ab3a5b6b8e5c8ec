import * as Effect from "effect/Effect"
import type { OperatorRole } from "../../domain/OperatorRole.ts"
import type { OperatorStatus } from "../../domain/OperatorStatus.ts"
import { int, name, nullable, text, texts, uuid } from "../../engine/sql/Column.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { first, lenient, run } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

/** The columns of a token that are shown: all columns except its hash. */
const token = {
  id: uuid(),
  userId: uuid(),
  name: text(),
  role: text<OperatorRole>(),
  allowedAddresses: texts,
  createdAt: int,
  expiresAt: int,
  lastUsedAt: nullable(int),
  lastUsedIp: nullable(text()),
  revokedAt: nullable(int)
}

const shown = { ...token, username: name() }
const owner = { username: name(), status: text<OperatorStatus>(), ownerRole: nullable(text()) }
const owned = `${select(token, "t")}, u.username AS "username"`

const insertStatement = statement({
  name: "token_insert",
  params: {
    id: token.id,
    userId: token.userId,
    name: token.name,
    role: token.role,
    tokenHash: text(),
    allowedAddresses: token.allowedAddresses,
    now: int,
    expiresAt: int
  },
  row: { id: token.id },
  sql: () =>
    `INSERT INTO api_tokens (id, user_id, name, role, token_hash, allowed_addresses, created_at, expires_at)
     SELECT :id, :userId, :name, :role, :tokenHash, :allowedAddresses, :now, :expiresAt
     WHERE NOT EXISTS (SELECT 1 FROM api_tokens
       WHERE user_id = :userId AND name = :name AND revoked_at IS NULL AND expires_at > :now)
     RETURNING id AS "id"`
})

const byHashStatement = statement({
  name: "token_by_hash",
  params: { tokenHash: text() },
  row: { ...token, ...owner },
  sql: () =>
    `SELECT ${owned}, u.status AS "status", u.role AS "ownerRole"
     FROM api_tokens t JOIN admin_users u ON u.id = t.user_id WHERE t.token_hash = :tokenHash`
})

const findStatement = statement({
  name: "token_find",
  params: { id: token.id },
  row: shown,
  sql: () => `SELECT ${owned} FROM api_tokens t JOIN admin_users u ON u.id = t.user_id WHERE t.id = :id`
})

const touchStatement = statement({
  name: "token_touch",
  params: { id: token.id, now: int, before: int, ahead: int, ip: nullable(text()) },
  row: { id: token.id },
  sql: () =>
    `UPDATE api_tokens SET last_used_at = :now, last_used_ip = :ip
     WHERE id = :id AND (last_used_at IS NULL OR last_used_at <= :before OR last_used_at > :ahead
       OR last_used_ip IS DISTINCT FROM :ip) RETURNING id AS "id"`
})

const correctStatement = statement({
  name: "token_correct",
  params: { id: token.id, now: int },
  row: {},
  sql: () =>
    `UPDATE api_tokens SET created_at = :now, expires_at = expires_at - created_at + :now
     WHERE id = :id AND created_at > :now`
})

const revokeStatement = statement({
  name: "token_revoke",
  params: { id: token.id, now: int },
  row: { id: token.id },
  sql: () => `UPDATE api_tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING id AS "id"`
})

const narrowing = (used: ReadonlyArray<"userId">) => used.length === 0 ? "" : "WHERE t.user_id = :userId"

const listStatement = perFilters(["userId"], (used) =>
  statement({
    name: "token_list",
    params: { userId: nullable(uuid()), limit: int, offset: int },
    row: shown,
    sql: () =>
      `SELECT ${owned} FROM api_tokens t JOIN admin_users u ON u.id = t.user_id ${narrowing(used)}
       ORDER BY t.id DESC LIMIT :limit OFFSET :offset`
  }))

const countStatement = perFilters(["userId"], (used) =>
  statement({
    name: "token_count",
    params: { userId: nullable(uuid()) },
    row: { total: int },
    sql: () => `SELECT count(*) AS "total" FROM api_tokens t ${narrowing(used)}`
  }))

/** A token in the form in which it is shown, with its owner's name. Times are epoch seconds. */
export type ApiTokenRecord = NonNullable<Effect.Success<ReturnType<typeof find>>>

/**
 * Inserts a token. Returns `undefined` if the owner already has a live token with this name. The caller must have
 * locked the owner's row. Otherwise two tokens with the same name could be inserted at the same time.
 */
export const insert = (row: {
  readonly id: string
  readonly userId: string
  readonly name: string
  readonly role: OperatorRole
  readonly tokenHash: string
  readonly allowedAddresses: ReadonlyArray<string>
  readonly now: number
  readonly expiresAt: number
}) => first(insertStatement, row)

/** Finds the token with this hash, with the facts about its owner that every request needs. */
export const findByHash = (tokenHash: string) => first(byHashStatement, { tokenHash })

/** Finds a token by its id. */
export const find = (id: string) => first(findStatement, { id })

/**
 * Stores the time of a use. Stores nothing if the last stored use was from the same address and differs from now by
 * less than `seconds`.
 */
export const touch = ({ seconds, ...of }: {
  readonly id: string
  readonly now: number
  readonly seconds: number
  readonly ip: string | undefined
}) => first(touchStatement, { ...of, before: of.now - seconds, ahead: of.now + seconds })

/**
 * Corrects a token whose creation time is in the future because a clock was wrong. The token then counts as created at
 * `now`, and keeps its lifetime.
 */
export const correct = (id: string, now: number) => run(correctStatement, { id, now })

/** Revokes a token. Returns `undefined` if it was already revoked. */
export const revoke = (id: string, now: number) => first(revokeStatement, { id, now })

/** Returns a page of tokens of one operator or of all operators, newest first. */
export const list = (of: { readonly userId: string | undefined; readonly limit: number; readonly offset: number }) =>
  lenient(listStatement(of), of)

/** Counts the tokens on all pages of a list. */
export const count = (userId: string | undefined) =>
  Effect.map(first(countStatement({ userId }), { userId }), (row) => row?.total ?? 0)
