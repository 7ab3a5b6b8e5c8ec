import * as Effect from "effect/Effect"
import { int, rows, text } from "../kernel/sql/Column.ts"
import { all, first, partitioned, run } from "../kernel/sql/Query.ts"
import { statement } from "../kernel/sql/Statement.ts"

const insertBatch = statement({
  name: "nonce_insert",
  params: { values: rows, now: int },
  row: {},
  sql: ({ at, each }) => `INSERT INTO nonces (value, created_at) SELECT ${at(0, "text")}, :now FROM ${each(":values")}`
})

const consumeBatch = statement({
  name: "nonce_consume",
  params: { values: rows },
  row: { value: text(), createdAt: int },
  sql: ({ at, each }) =>
    `DELETE FROM nonces WHERE value IN (SELECT ${at(0, "text")} FROM ${each(":values")})
     RETURNING value, created_at AS "createdAt"`
})

const consumeOne = statement({
  name: "nonce_consume_one",
  params: { value: text() },
  row: { createdAt: int },
  sql: () => `DELETE FROM nonces WHERE value = :value RETURNING created_at AS "createdAt"`
})

const sweepBatch = statement({
  name: "nonce_sweep",
  params: { before: int, limit: int },
  row: { value: text() },
  sql: () =>
    `DELETE FROM nonces WHERE value IN
       (SELECT value FROM nonces WHERE created_at < :before ORDER BY created_at LIMIT :limit) RETURNING value`
})

/** Stores new nonces. */
export const insert = (values: ReadonlyArray<string>, now: number) =>
  run(insertBatch, { values: values.map((value) => [value]), now })

/**
 * Deletes those of `values` that exist, and answers when each was made. The delete decides every race. One whose row cannot be read
 * counts as unknown.
 */
export const consume = (values: ReadonlyArray<string>) =>
  values.length === 1
    ? Effect.map(
      partitioned(consumeOne, { value: values[0] ?? "" }),
      ({ readable }) => readable.map(({ createdAt }) => ({ value: values[0], createdAt }))
    )
    : Effect.map(partitioned(consumeBatch, { values: values.map((value) => [value]) }), ({ readable }) => readable)

/** Deletes up to `limit` nonces made before an epoch second; answers how many there were. */
export const sweep = (before: number, limit: number) =>
  Effect.map(all(sweepBatch, { before, limit }), (gone) => gone.length)

const countStatement = statement({
  name: "nonce_count",
  params: {},
  row: { count: int },
  sql: () => `SELECT count(*) AS "count" FROM nonces`
})

/** How many nonces are stored, those that can no longer be spent included. */
export const count = Effect.map(Effect.suspend(() => first(countStatement, {})), (row) => row?.count ?? 0)
