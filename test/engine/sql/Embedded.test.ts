import { assert, describe, it } from "@effect/vitest"
import Engine from "better-sqlite3"
import { Context, Effect, Layer } from "effect"
import type { Scope } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Database } from "../../../src/engine/sql/Database.ts"
import type { Executor, Row } from "../../../src/engine/sql/Driver.ts"
import { SqlError } from "../../../src/engine/sql/SqlError.ts"
import * as Sqlite from "../../../src/engine/sql/Sqlite.ts"
import type { Sent } from "../../support/EngineAnswers.ts"
import { answersTo } from "../../support/EngineAnswers.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "acme-embedded-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

const statements: ReadonlyArray<Sent> = [
  ["CREATE TABLE things (id BLOB PRIMARY KEY, name TEXT UNIQUE, size INTEGER CHECK (size > 0), share REAL) STRICT"],
  ["INSERT INTO things VALUES (?, ?, ?, ?)", [Buffer.from([1]), "ä\u0000b", 1, 0.5]],
  ["INSERT INTO things VALUES (?, ?, ?, ?) RETURNING id, name", [Buffer.from([2]), null, 2 ** 53 - 1, null]],
  ["SELECT * FROM things ORDER BY id"],
  ["SELECT * FROM things WHERE name = ?", ["nobody"]],
  ["UPDATE things SET size = size - ? RETURNING size", [0]],
  ["INSERT INTO things VALUES (?, ?, ?, ?)", [Buffer.from([1]), "twice", 1, 1]],
  ["INSERT INTO things VALUES (?, ?, ?, ?)", [Buffer.from([3]), "ä\u0000b", 1, 1]],
  ["INSERT INTO things VALUES (?, ?, ?, ?)", [Buffer.from([4]), "small", 0, 1]],
  ["INSERT INTO things VALUES (?, ?, ?, ?)", [Buffer.from([5]), "text for a number", "x", 1]],
  ["SELECT * FROM things WHERE name = ?", []],
  ["SELECT * FROM things WHERE name = ?", ["a", "b"]],
  ["SELECT * FROM things WHERE name = ?", [{}]],
  ["SELECT FROM"],
  ["SELECT * FROM nothing"],
  ["SELECT 1; SELECT 2"],
  ["PRAGMA foreign_keys"],
  ["PRAGMA journal_mode"],
  ["BEGIN IMMEDIATE"],
  ["BEGIN IMMEDIATE"],
  ["DELETE FROM things WHERE size = ?", [1]],
  ["ROLLBACK"],
  ["ROLLBACK"],
  ["SELECT count(*) AS total FROM things"]
]

const answers = answersTo(statements)

/** The engine without any layer above it. It prepares each statement anew each time. */
const judgeAt = (path: string): Effect.Effect<Executor, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(Effect.sync(() => new Engine(path)), (engine) => Effect.sync(() => engine.close())),
    (engine) => {
      engine.pragma("journal_mode = WAL")
      engine.pragma("foreign_keys = ON")
      return {
        execute: (text, params) =>
          Effect.try({
            try: () => {
              const statement = engine.prepare(text)
              if (statement.reader) return statement.all(...params) as ReadonlyArray<Row>
              statement.run(...params)
              return []
            },
            catch: (cause) => new SqlError({ cause })
          })
      }
    }
  )

describe("the connection to the embedded engine", () => {
  it.effect("answers every statement as the engine itself does", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const judge = yield* judgeAt(join(path, "judge.db"))
      const opened = yield* Layer.build(Sqlite.layer({ path: join(path, "own.db"), synchronous: "full" }))
      const own = Context.get(opened, Database)
      const wanted = yield* answers(judge)
      assert.deepStrictEqual(yield* own.exclusive((connection) => answers(connection)), wanted)
    }))
})
