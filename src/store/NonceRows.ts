import * as Effect from "effect/Effect"
import { int, nullable, rows, text } from "../engine/sql/Column.ts"
import { all, first, partitioned, run } from "../engine/sql/Query.ts"
import { statement } from "../engine/sql/Statement.ts"

const insertBatch = statement({
  name: "nonce_insert",
  params: { values: rows, second: int, millisecond: int },
  row: {},
  sql: ({ at, each }) =>
    `INSERT INTO nonces (value, created_at, created_millisecond)
     SELECT ${at(0, "text")}, :second, :millisecond FROM ${each(":values")}`
})

const consumeBatch = statement({
  name: "nonce_consume",
  params: { values: rows },
  row: { value: text(), second: int, millisecond: nullable(int) },
  sql: ({ at, each }) =>
    `DELETE FROM nonces WHERE value IN (SELECT ${at(0, "text")} FROM ${each(":values")})
     RETURNING value, created_at AS "second", created_millisecond AS "millisecond"`
})

const sweepBatch = statement({
  name: "nonce_sweep",
  params: { before: int, limit: int },
  row: { value: text() },
  sql: () =>
    `DELETE FROM nonces WHERE value IN
       (SELECT value FROM nonces WHERE created_at < :before ORDER BY created_at LIMIT :limit) RETURNING value`
})

/** Stores new nonces that were made at `now` (milliseconds since 1970). */
export const insert = (values: ReadonlyArray<string>, now: number) =>
  run(insertBatch, {
    values: values.map((value) => [value]),
    second: Math.floor(now / 1000),
    millisecond: now % 1000
  })

const findStatement = statement({
  name: "nonce_find",
  params: { value: text() },
  row: { value: text() },
  sql: () => `SELECT value AS "value" FROM nonces WHERE value = :value`
})

/** Returns whether a nonce is stored. */
export const isStored = (value: string) => Effect.map(first(findStatement, { value }), (row) => row !== undefined)

/**
 * Deletes those of `values` that exist. Answers when each was made, in milliseconds since 1970, at the end of its second where an
 * older version made it. The delete decides every race. One whose row cannot be read counts as unknown.
 */
export const consume = (values: ReadonlyArray<string>) =>
  Effect.map(
    partitioned(consumeBatch, { values: values.map((value) => [value]) }),
    ({ readable }) =>
      readable.map(({ millisecond = 999, second, value }) => ({ value, madeAt: second * 1000 + millisecond }))
  )

/** Deletes up to `limit` nonces made before an epoch second. Returns their number. */
export const sweep = (before: number, limit: number) =>
  Effect.map(all(sweepBatch, { before, limit }), (gone) => gone.length)

const countStatement = statement({
  name: "nonce_count",
  params: {},
  row: { count: int },
  sql: () => `SELECT count(*) AS "count" FROM nonces`
})

/** Counts the stored nonces, including nonces that can no longer be used. */
export const count = Effect.map(Effect.suspend(() => first(countStatement, {})), (row) => row?.count ?? 0)
