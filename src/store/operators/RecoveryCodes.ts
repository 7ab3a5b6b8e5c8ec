import * as Effect from "effect/Effect"
import { int, packedUuid, rows, text, uuid } from "../../engine/sql/Column.ts"
import { all, first, run } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

const unusedStatement = statement({
  name: "recovery_code_unused",
  params: { userId: uuid() },
  row: { id: uuid(), codeHash: text() },
  sql: () =>
    `SELECT id AS "id", code_hash AS "codeHash" FROM admin_recovery_codes
     WHERE user_id = :userId AND used_at IS NULL`
})

const matchableStatement = statement({
  name: "recovery_code_matchable",
  params: { userId: uuid(), since: int },
  row: { id: uuid(), codeHash: text() },
  sql: () =>
    `SELECT id AS "id", code_hash AS "codeHash" FROM admin_recovery_codes
     WHERE user_id = :userId AND (used_at IS NULL OR used_at >= :since)`
})

const consumeStatement = statement({
  name: "recovery_code_consume",
  params: { id: uuid(), userId: uuid(), now: int },
  row: { id: uuid() },
  sql: () =>
    `UPDATE admin_recovery_codes SET used_at = :now
     WHERE id = :id AND user_id = :userId AND used_at IS NULL RETURNING id AS "id"`
})

const deleteStatement = statement({
  name: "recovery_code_delete",
  params: { userId: uuid() },
  row: {},
  sql: () => `DELETE FROM admin_recovery_codes WHERE user_id = :userId`
})

const insertStatement = statement({
  name: "recovery_code_insert",
  params: { userId: uuid(), codes: rows, now: int },
  row: {},
  sql: ({ at, each }) =>
    `INSERT INTO admin_recovery_codes (id, user_id, code_hash, created_at)
     SELECT ${at(0, "uuid")}, :userId, ${at(1, "text")}, :now FROM ${each(":codes")}`
})

/** Returns the hashes of an operator's unused codes. */
export const unused = (userId: string) => all(unusedStatement, { userId })

/** Returns the hashes of an operator's codes that are unused, or were used at or after an epoch second. */
export const matchable = (userId: string, since: number) => all(matchableStatement, { userId, since })

/** Counts the unused codes of an operator. */
export const remaining = (userId: string) => Effect.map(unused(userId), ({ length }) => length)

/**
 * Marks a code as used. Returns `undefined` if the code was already used, or if it belongs to a set that has been
 * replaced.
 */
export const consume = (of: { readonly id: string; readonly userId: string; readonly now: number }) =>
  first(consumeStatement, of)

/** Deletes every code of an operator. */
export const removeAll = (userId: string) => run(deleteStatement, { userId })

/** Replaces the set of codes of an operator. */
export const replace = (of: {
  readonly userId: string
  readonly codes: ReadonlyArray<{ readonly id: string; readonly hash: string }>
  readonly now: number
}) =>
  Effect.andThen(
    removeAll(of.userId),
    run(insertStatement, {
      userId: of.userId,
      codes: of.codes.map(({ hash, id }) => [packedUuid(id), hash]),
      now: of.now
    })
  )
