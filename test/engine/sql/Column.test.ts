import { it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import { assert, describe } from "vitest"
import type { Column, Columns } from "../../../src/engine/sql/Column.ts"
import * as C from "../../../src/engine/sql/Column.ts"
import { first, lenient, partitioned } from "../../../src/engine/sql/Query.ts"
import { statement } from "../../../src/engine/sql/Statement.ts"
import { databases, useDatabase } from "../../support/Databases.ts"
import { sql } from "../../support/Graph.ts"

const seed = { seed: 7, numRuns: 100 }

interface Pair {
  readonly name: string
  readonly list: ReadonlyArray<number>
}

const pair = C.json<Pair>({
  fits: (value) => "name" in value && typeof value.name === "string" && "list" in value && Array.isArray(value.list),
  standIn: { name: "", list: [] }
})

/** Returns the failure of an effect. */
const reasonsOf = (exit: Exit.Exit<unknown, unknown>): ReadonlyArray<string> =>
  Exit.isFailure(exit) ? exit.cause.reasons.map(({ _tag }) => _tag) : []

/** A statement that sends a value to the database and returns it. */
const echo = <A>(column: Column<A>, type: { readonly sqlite: string; readonly postgres: string }) =>
  statement({
    name: "echo",
    params: { value: column },
    row: { value: column },
    sql: ({ dialect }) => `SELECT CAST(:value AS ${type[dialect]}) AS "value"`
  })

describe.each(databases)("columns on $name", (backend) => {
  const database = useDatabase(backend)
  const { dialect } = backend
  const comesBack = <A>(
    column: Column<A>,
    type: { readonly sqlite: string; readonly postgres: string },
    arbitrary: fc.Arbitrary<A>
  ) => {
    const through = echo(column, type)
    return Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(arbitrary, async (value) => {
          const row = await Effect.runPromise(database.use(first(through, { value } as never)))
          assert.deepStrictEqual((row as { readonly value: unknown } | undefined)?.value, value)
        }),
        seed
      )
    )
  }

  it.live("carry integers within the safe range", () =>
    comesBack(C.int, { sqlite: "INTEGER", postgres: "BIGINT" }, fc.maxSafeInteger()))

  it.live("carry the integers at the ends of the safe range", () =>
    database.use(Effect.gen(function*() {
      const through = echo(C.int, { sqlite: "INTEGER", postgres: "BIGINT" })
      for (const value of [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 0, -1, 2 ** 31, 2 ** 40]) {
        assert.deepStrictEqual(yield* first(through, { value }), { value })
      }
    })))

  it.live("refuse an integer outside the safe range in both directions", () =>
    database.use(Effect.gen(function*() {
      const through = echo(C.int, { sqlite: "INTEGER", postgres: "BIGINT" })
      for (const value of [2 ** 53, -(2 ** 53), 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
        assert.throws(() => C.int.encode(value, dialect), TypeError)
        const exit = yield* Effect.exit(first(through, { value }))
        assert.strictEqual(exit._tag, "Failure")
      }
      const large = statement({
        name: "large",
        params: {},
        row: { value: C.int },
        sql: ({ dialect }) =>
          `SELECT CAST('9007199254740993' AS ${dialect === "sqlite" ? "INTEGER" : "BIGINT"}) AS "value"`
      })
      assert.strictEqual((yield* Effect.exit(first(large, {})))._tag, "Failure")
    })))

  it.live("return counts and sums as numbers", () =>
    database.use(Effect.gen(function*() {
      const counted = statement({
        name: "counted",
        params: {},
        row: { count: C.int, sum: C.int },
        sql: () => `SELECT count(*) AS "count", sum(n) AS "sum" FROM (SELECT 1 AS n UNION ALL SELECT 2 AS n) AS t`
      })
      assert.deepStrictEqual(yield* first(counted, {}), { count: 2, sum: 3 })
    })))

  it.live("carry any text without U+0000", () =>
    comesBack(
      C.text(),
      { sqlite: "TEXT", postgres: "TEXT" },
      fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\u0000"))
    ))

  it.live("refuse text with U+0000 before it reaches the database", () =>
    database.use(Effect.gen(function*() {
      const through = echo(C.text(), { sqlite: "TEXT", postgres: "TEXT" })
      const exit = yield* Effect.exit(first(through, { value: "a\u0000b" }))
      assert.deepStrictEqual(reasonsOf(exit), ["Die"])
      const inside = C.texts
      assert.strictEqual(inside.encode(["a\u0000b"], dialect), `["a\\u0000b"]`, "escaped JSON holds none")
      assert.throws(() => C.text().encode("\u0000", dialect), TypeError)
      assert.throws(() => C.rows.encode([["a", 1], ["a\u0000b", 2]], dialect), TypeError)
    })))

  it.live("carry bytes, even from a view into a larger buffer", () =>
    Effect.gen(function*() {
      const arbitrary = fc.uint8Array({ maxLength: 64 }).map((octets) => Buffer.from(octets))
      yield* comesBack<Uint8Array>(C.bytes, { sqlite: "BLOB", postgres: "BYTEA" }, arbitrary)
      const through = echo(C.bytes, { sqlite: "BLOB", postgres: "BYTEA" })
      const view = new Uint8Array([9, 1, 2, 3, 9]).subarray(1, 4)
      const row = yield* database.use(first(through, { value: view }))
      assert.deepStrictEqual([...row?.value ?? []], [1, 2, 3])
    }))

  it.live("carry booleans", () => comesBack(C.bool, { sqlite: "INTEGER", postgres: "BOOLEAN" }, fc.boolean()))

  it.live("carry UUIDs, which are written in lower case and with hyphens in memory", () =>
    comesBack(C.uuid(), { sqlite: "BLOB", postgres: "UUID" }, fc.uuid()))

  it.live("encode a text that is not a UUID without a failure, as the id of no row", () =>
    Effect.sync(() => {
      const octets = (id: string) => (C.uuid().encode(id, "sqlite") as Buffer).toString("hex")
      const id = "00112233-4455-6677-8899-aabbccddeeff"
      for (const same of [id, id.toUpperCase(), id.replaceAll("-", "")]) {
        assert.strictEqual(octets(same), "00112233445566778899aabbccddeeff")
      }
      for (const other of ["", "00", "x".repeat(36), `${id.slice(0, 35)}x`, `${id.slice(0, 8)}${id.slice(9)}-`]) {
        const known = Buffer.from(other.replaceAll("-", ""), "hex").toString("hex")
        assert.strictEqual(octets(other), known, other)
      }
      fc.assert(
        fc.property(fc.string({ minLength: 36, maxLength: 36, unit: fc.constantFrom(..."0aF-x") }), (text) => {
          assert.strictEqual(octets(text), Buffer.from(text.replaceAll("-", ""), "hex").toString("hex"))
        }),
        { ...seed, numRuns: 2000 }
      )
    }))

  it.live("write JSON in one form, with members in the given order and without white space", () =>
    Effect.gen(function*() {
      const column = pair
      const arbitrary = fc.record({ name: fc.string({ unit: "grapheme" }), list: fc.array(fc.integer()) })
      yield* comesBack(column, { sqlite: "TEXT", postgres: "TEXT" }, arbitrary)
      assert.strictEqual(column.encode({ name: "x y", list: [1, 2] }, dialect), `{"name":"x y","list":[1,2]}`)
    }))

  it.live("return NULL as undefined for every type", () =>
    database.use(Effect.gen(function*() {
      for (
        const column of [C.int, C.bool, C.bytes, C.text(), C.uuid(), pair] as ReadonlyArray<Columns[string]>
      ) {
        assert.strictEqual(C.nullable(column).encode(undefined, dialect), null)
        assert.strictEqual(C.nullable(column).decode(null, dialect), undefined)
        assert.throws(() => column.decode(null, dialect), /./, "NULL where it may not be")
      }
      const none = statement({
        name: "none",
        params: {},
        row: { value: C.nullable(C.int) },
        sql: () => `SELECT NULL AS "value"`
      })
      assert.deepStrictEqual(yield* first(none, {}), { value: undefined })
    })))

  it.live("make the statement fail at a value of another type", () =>
    database.use(Effect.gen(function*() {
      const wrong: ReadonlyArray<readonly [Columns[string], string]> = [
        [C.int, "'text'"],
        [C.bool, "2"],
        [C.bytes, "'text'"],
        [C.text(), "1"],
        [pair, "1"],
        [pair, "'null'"],
        [pair, "'nothing'"]
      ]
      for (const [column, literal] of wrong) {
        const one = statement({
          name: "wrong",
          params: {},
          row: { value: column },
          sql: () => `SELECT ${literal} AS "value"`
        })
        const refused = yield* Effect.flip(first(one, {}))
        assert.isTrue(refused._tag === "StorageFailed" && refused.isUnreadable && !refused.transient, literal)
        assert.include(refused.message, "value: holds")
        const { readable, unreadable } = yield* partitioned(one, {})
        assert.deepStrictEqual([readable.length, unreadable.length], [0, 1])
      }
      const beyond = statement({
        name: "beyond",
        params: {},
        row: { value: C.int },
        sql: () => `SELECT -9223372036854775807 AS "value"`
      })
      assert.deepStrictEqual(yield* lenient(beyond, {}), [{ value: Number.MIN_SAFE_INTEGER }])
      const unshown = statement({
        name: "unshown",
        params: {},
        row: { value: C.bytes },
        sql: () => `SELECT 'a' AS "value"`
      })
      assert.deepStrictEqual(yield* lenient(unshown, {}), [])
    })))

  it.live("carry a set of rows in one parameter", () =>
    database.use(Effect.gen(function*() {
      const id = "00112233-4455-6677-8899-aabbccddeeff"
      const through = statement({
        name: "row_set",
        params: { rows: C.rows },
        row: { id: C.uuid(), n: C.int, text: C.text() },
        sql: ({ at, each }) =>
          `SELECT ${at(0, "uuid")} AS "id", ${at(1, "int")} AS "n", ${at(2, "text")} AS "text" FROM ${each(":rows")}`
      })
      const row = yield* first(through, { rows: [[C.packedUuid(id), 7, `a "quoted" 'text'`]] })
      assert.deepStrictEqual(row, { id, n: 7, text: `a "quoted" 'text'` })
      const none = yield* first(through, { rows: [] })
      assert.strictEqual(none, undefined)
    })))

  it.live("send a parameter that is used twice to both places", () =>
    database.use(Effect.gen(function*() {
      const twice = statement({
        name: "twice",
        params: { a: C.text(), b: C.text() },
        row: { value: C.text() },
        sql: ({ dialect }) => {
          const t = (name: string) => dialect === "postgres" ? `:${name}::text` : `:${name}`
          return `SELECT ${t("a")} || ${t("b")} || ${t("a")} AS "value"`
        }
      })
      assert.deepStrictEqual(yield* first(twice, { a: "x", b: "y" }), { value: "xyx" })
      assert.strictEqual((yield* sql("SELECT 1 AS one")).length, 1)
    })))
})
