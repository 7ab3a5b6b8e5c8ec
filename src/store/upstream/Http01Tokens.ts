import * as Effect from "effect/Effect"
import { int, text } from "../../engine/sql/Column.ts"
import { all, first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* The key authorizations of the relay's http01 strategy, for the processes that serve them. */

const putStatement = statement({
  name: "http01_token_put",
  params: { token: text(), keyAuthorization: text(), now: int, expiresAt: int },
  row: {},
  sql: () =>
    `INSERT INTO http01_tokens (token, key_authorization, created_at, expires_at)
     VALUES (:token, :keyAuthorization, :now, :expiresAt)
     ON CONFLICT (token) DO UPDATE SET key_authorization = excluded.key_authorization, expires_at = excluded.expires_at`
})

const findStatement = statement({
  name: "http01_token",
  params: { token: text(), now: int },
  row: { keyAuthorization: text() },
  sql: () =>
    `SELECT key_authorization AS "keyAuthorization" FROM http01_tokens WHERE token = :token AND expires_at > :now`
})

const removeStatement = statement({
  name: "http01_token_remove",
  params: { token: text() },
  row: {},
  sql: () => "DELETE FROM http01_tokens WHERE token = :token"
})

const sweepStatement = statement({
  name: "http01_token_sweep",
  params: { now: int, limit: int },
  row: { token: text() },
  sql: () =>
    `DELETE FROM http01_tokens WHERE token IN
       (SELECT token FROM http01_tokens WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit) RETURNING token`
})

/** Stores the key authorization of a token. It expires at the given epoch second. */
export const put = (row: {
  readonly token: string
  readonly keyAuthorization: string
  readonly now: number
  readonly expiresAt: number
}) => run(putStatement, row)

/** Returns the key authorization of a token. */
export const find = (token: string, now: number) =>
  Effect.map(first(findStatement, { token, now }), (row) => row?.keyAuthorization)

/** Deletes a token. */
export const remove = (token: string) => run(removeStatement, { token })

/** Deletes up to `limit` expired tokens. Returns how many tokens were deleted. */
export const sweep = (now: number, limit: number) =>
  Effect.map(all(sweepStatement, { now, limit }), (gone) => gone.length)
