import * as Effect from "effect/Effect"
import type { OperatorStatus } from "../../domain/OperatorStatus.ts"
import { int, name, nullable, text, uuid } from "../../engine/sql/Column.ts"
import { all, first, run } from "../../engine/sql/Query.ts"
import { select, statement } from "../../engine/sql/Statement.ts"

/* The links with which operators set their passwords, at most one for each operator. Only hashes of tokens are stored. */

const link = { userId: uuid(), expiresAt: nullable(int), usedAt: nullable(int) }
const owner = { username: name(), status: text<OperatorStatus>() }

const putStatement = statement({
  name: "password_link_put",
  params: { userId: uuid(), tokenHash: text(), expiresAt: int },
  row: {},
  sql: () =>
    `INSERT INTO admin_password_links (user_id, token_hash, expires_at, owed)
     VALUES (:userId, :tokenHash, :expiresAt, 0)
     ON CONFLICT (user_id) DO UPDATE
       SET token_hash = excluded.token_hash, expires_at = excluded.expires_at, used_at = NULL`
})

const oweStatement = statement({
  name: "password_link_owe",
  params: { userId: uuid() },
  row: {},
  sql: () => `INSERT INTO admin_password_links (user_id, owed) VALUES (:userId, 1) ON CONFLICT (user_id) DO NOTHING`
})

const owedStatement = statement({
  name: "password_link_owed",
  params: {},
  row: { username: name() },
  sql: () =>
    `SELECT u.username AS "username" FROM admin_password_links l JOIN admin_users u ON u.id = l.user_id
     WHERE l.owed = 1 AND u.status = 'active' ORDER BY u.username LIMIT 1`
})

const findStatement = statement({
  name: "password_link_find",
  params: { tokenHash: text() },
  row: { ...link, ...owner },
  sql: () =>
    `SELECT ${select(link, "l")}, ${select(owner, "u")}
     FROM admin_password_links l JOIN admin_users u ON u.id = l.user_id WHERE l.token_hash = :tokenHash`
})

const useStatement = statement({
  name: "password_link_use",
  params: { tokenHash: text(), now: int },
  row: { userId: uuid() },
  sql: () =>
    `UPDATE admin_password_links SET used_at = :now, owed = 0
     WHERE token_hash = :tokenHash AND used_at IS NULL AND expires_at > :now RETURNING user_id AS "userId"`
})

const forgetStatement = statement({
  name: "password_link_forget",
  params: { userId: uuid() },
  row: {},
  sql: () => `DELETE FROM admin_password_links WHERE user_id = :userId`
})

const sweepStatement = statement({
  name: "password_link_sweep",
  params: { from: int, upTo: int, limit: int },
  row: { userId: uuid() },
  sql: () =>
    `DELETE FROM admin_password_links WHERE user_id IN
       (SELECT user_id FROM admin_password_links WHERE owed = 0 AND expires_at >= :from AND expires_at <= :upTo
        ORDER BY expires_at LIMIT :limit)
     RETURNING user_id AS "userId"`
})

/** A link with its operator. Times are epoch seconds. */
export type FoundLink = NonNullable<Effect.Success<ReturnType<typeof find>>>

/** Stores the hash of a new token for an operator. An earlier link of the operator is no longer valid. */
export const put = (of: { readonly userId: string; readonly tokenHash: string; readonly expiresAt: number }) =>
  run(putStatement, of)

/** Stores that an operator needs a link, because nobody knows the operator's password. */
export const owe = (userId: string) => run(oweStatement, { userId })

/** Returns the name of the first active operator who needs a link. */
export const owed = Effect.map(first(owedStatement, {}), (row) => row?.username)

/** Finds the link of a token, even if it has ended or was used. */
export const find = (tokenHash: string) => first(findStatement, { tokenHash })

/** Uses a link. Returns `undefined` if it has ended, if it was used already, or if there is no such link. */
export const use = (tokenHash: string, now: number) => first(useStatement, { tokenHash, now })

/** Removes the link of an operator whose password was set in another way. */
export const forget = (userId: string) => run(forgetStatement, { userId })

/**
 * Deletes up to `limit` links whose end is between two epoch seconds, inclusive. A link that is owed stays. Returns how
 * many links were deleted.
 */
export const sweep = (of: { readonly from: number; readonly upTo: number; readonly limit: number }) =>
  Effect.map(all(sweepStatement, of), (gone) => gone.length)
