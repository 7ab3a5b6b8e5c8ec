import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { tables } from "../../../src/store/transfer/Tables.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"

/* Compares the list of tables that `transfer` copies with the actual schema, so that nothing is left behind. */

/** The type of a column in each engine, by the kind of the column. */
const types = {
  sqlite: { uuid: "BLOB", text: "TEXT", bytes: "BLOB", int: "INTEGER", bool: "INTEGER" },
  postgres: { uuid: "uuid", text: "text", bytes: "bytea", int: "bigint", bool: "boolean" }
} as const

const texts = {
  sqlite: {
    tables: "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    columns: "SELECT name, type, pk AS key FROM pragma_table_info(?)",
    parents: `SELECT "table" AS parent FROM pragma_foreign_key_list(?)`,
    numbered: "SELECT name FROM sqlite_master WHERE sql LIKE '%AUTOINCREMENT%'"
  },
  postgres: {
    tables: "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
    columns: `SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type,
       coalesce(array_position(i.indkey::int2[], a.attnum) + 1, 0) AS key
       FROM pg_attribute a LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
       WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped`,
    parents:
      "SELECT confrelid::regclass::text AS parent FROM pg_constraint WHERE contype = 'f' AND conrelid = $1::regclass",
    numbered: "SELECT attrelid::regclass::text FROM pg_attribute WHERE attidentity <> ''"
  }
} as const

describe.each(databases)("the list of tables to copy, $name", (backend) => {
  const database = useDatabase(backend)
  const { [backend.dialect]: text } = texts

  it.effect("contains every table once except the schema history, and no other table", () =>
    database.use(Effect.gen(function*() {
      const there = (yield* column(text.tables)).filter((name) => name !== "schema_migrations")
      assert.deepStrictEqual(tables.map(({ name }) => name).sort(), [...there].sort())
    })))

  it.effect.each(tables.map(({ name }) => name))(
    "has every column of %s with its type, and the primary key",
    (name) =>
      database.use(Effect.gen(function*() {
        const table = tables.find((one) => one.name === name)
        const there = yield* sql(text.columns, [name])
        assert.deepStrictEqual(
          table?.columns.map(([column, kind]) => `${column} ${types[backend.dialect][kind]}`),
          there.map((one) => `${String(one.name)} ${String(one.type)}`)
        )
        const key = there.filter((one) => Number(one.key) > 0).sort((a, b) => Number(a.key) - Number(b.key))
        assert.deepStrictEqual(table?.key, key.map((one) => String(one.name)))
      }))
  )

  it.effect("has each table after the tables to which the table refers", () =>
    database.use(Effect.gen(function*() {
      const order = tables.map(({ name }) => name)
      for (const name of order) {
        for (const { parent } of yield* sql(text.parents, [name])) {
          assert.isBelow(order.indexOf(String(parent)), order.indexOf(name), `${name} refers to ${String(parent)}`)
        }
      }
      const numbered = tables.filter(({ isNumbered }) => isNumbered).map(({ name }) => name)
      assert.deepStrictEqual(numbered, yield* column(text.numbered))
    })))
})
