import { int, text } from "../../src/engine/sql/Column.ts"
import { statement } from "../../src/engine/sql/Statement.ts"

/* Statements on the table `nonces`, which has the fewest columns, for tests that need a simple statement. */

/** Inserts a row. */
export const insert = statement({
  name: "test_insert",
  params: { value: text() },
  row: {},
  sql: () => "INSERT INTO nonces (value, created_at) VALUES (:value, 0)"
})

/** Adds one to the time of a row, and returns the new time. */
export const bump = statement({
  name: "test_bump",
  params: { value: text() },
  row: { createdAt: int },
  sql: () => `UPDATE nonces SET created_at = created_at + 1 WHERE value = :value RETURNING created_at AS "createdAt"`
})

/** Reads a row. */
export const read = statement({
  name: "test_read",
  params: { value: text() },
  row: { createdAt: int },
  sql: () => `SELECT created_at AS "createdAt" FROM nonces WHERE value = :value`
})
