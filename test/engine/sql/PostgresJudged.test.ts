import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Record, Redacted } from "effect"
import type { Scope } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { Executor } from "../../../src/engine/sql/Driver.ts"
import { SqlError } from "../../../src/engine/sql/SqlError.ts"
import { postgres, useDatabase } from "../../support/Databases.ts"
import type { Sent } from "../../support/EngineAnswers.ts"
import { answersTo } from "../../support/EngineAnswers.ts"
import { openDriver } from "../../support/Graph.ts"

const statements: ReadonlyArray<Sent> = [
  ["CREATE TEMPORARY TABLE things (id bytea PRIMARY KEY, name text UNIQUE, size integer CHECK (size > 0), share real)"],
  ["INSERT INTO things VALUES ($1, $2, $3, $4)", [Buffer.from([1]), "ä", 1, 0.5]],
  ["INSERT INTO things VALUES ($1, $2, $3, $4) RETURNING id, name", [Buffer.from([2]), null, 2 ** 31 - 1, null]],
  ["SELECT id, name, size, share FROM things ORDER BY id"],
  ["SELECT name FROM things WHERE name = $1", ["nobody"]],
  ["UPDATE things SET size = size - $1 RETURNING size", [0]],
  ["INSERT INTO things VALUES ($1, $2, $3, $4)", [Buffer.from([1]), "twice", 1, 1]],
  ["INSERT INTO things VALUES ($1, $2, $3, $4)", [Buffer.from([4]), "small", 0, 1]],
  ["SELECT name FROM things WHERE name = $1", ["a\u0000b"]],
  ["SELECT FROM FROM"],
  ["SELECT * FROM nothing"],
  ["BEGIN"],
  ["DELETE FROM things WHERE size = $1", [1]],
  ["SELECT * FROM nothing"],
  ["SELECT 1"],
  ["ROLLBACK"],
  ["SELECT true AS one, '{1,2}'::integer[] AS some, '{\"a\":1}'::json AS form, now() IS NULL AS other"]
]

const answers = answersTo(statements)

/** The client of the library. It returns octets unchanged, and wraps its own reason around the server's message. */
const judgeAt = (url: string): Effect.Effect<Executor, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const client = yield* Layer.build(PgClient.layer({ url: Redacted.make(url) }))
    const reserved = yield* Context.get(client, SqlClient.SqlClient).reserve
    const octets = (value: unknown) => value instanceof Uint8Array ? Buffer.from(value) : value
    return {
      execute: (text, params) =>
        reserved.execute(text, params, undefined).pipe(
          Effect.map((rows) => rows.map((row) => Record.map(row, octets))),
          Effect.mapError(({ reason }) => new SqlError({ cause: reason.cause }))
        )
    }
  })

/** Keeps only the server's message of each failure, because each client makes its own error from it. */
const told = (given: ReadonlyArray<unknown>) =>
  given.map((answer) => Array.isArray(answer) && typeof answer[0] === "string" ? answer.slice(1) : answer)

describe("a connection to PostgreSQL", () => {
  const database = useDatabase(postgres)

  it.effect("answers every statement as the client of @effect/sql-pg does", () =>
    Effect.gen(function*() {
      const judge = yield* judgeAt(database.url())
      const own = yield* openDriver(database.url())
      assert.deepStrictEqual(told(yield* own.exclusive(answers)), told(yield* answers(judge)))
      assert.strictEqual(own.connections().busy, 0)
    }))

  it.effect("passes on the server's message if there is one parameter too many", () =>
    Effect.gen(function*() {
      const own = yield* openDriver(database.url())
      const [answer] = yield* own.exclusive(answersTo([["SELECT 1 AS one WHERE 'a' = $1", ["a", "b"]]]))
      assert.strictEqual((answer as ReadonlyArray<unknown>)[1], "08P01")
    }))

  it.effect("is returned after a statement that failed or could not be sent", () =>
    Effect.gen(function*() {
      const own = yield* openDriver(database.url(), 1)
      const single = (text: string, params: ReadonlyArray<unknown> = []) =>
        own.single({ text, order: [], reads: false }, params)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(single("SELECT * FROM nothing"))))
      const circular: { [name: string]: unknown } = {}
      circular["self"] = circular
      assert.isTrue(Exit.isFailure(yield* Effect.exit(single("SELECT $1::json", [circular]))))
      assert.deepStrictEqual(yield* single("SELECT 1 AS one"), [{ one: 1 }])
      assert.deepStrictEqual(own.connections(), { idle: 1, busy: 0 })
    }))
})
