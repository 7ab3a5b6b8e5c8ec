import { it } from "@effect/vitest"
import Engine from "better-sqlite3"
import { Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Database } from "../../../src/engine/sql/Database.ts"
import * as Sqlite from "../../../src/engine/sql/Sqlite.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { sql } from "../../support/OpenDatabase.ts"

const modes = ["full", "normal", "grouped"] as const

const add = sql("INSERT INTO things DEFAULT VALUES")

/**
 * Opens a file, commits, lets somebody change the files, and commits again. Returns the sentence about it, after which
 * nothing more is committed, and how many commits the next process finds.
 */
const told = (synchronous: typeof modes[number], change: (path: string) => void) =>
  Effect.gen(function*() {
    const path = join(freshDirectory(), "acme.db")
    const sentence = yield* Effect.scoped(Effect.gen(function*() {
      const context = yield* Layer.build(Sqlite.layer({ path, synchronous }))
      return yield* Effect.gen(function*() {
        const { lost } = yield* Database
        const looking = yield* Effect.forkChild(lost ?? assert.fail("nobody looks"))
        yield* sql("CREATE TABLE things (id INTEGER PRIMARY KEY)")
        yield* add
        yield* TestClock.adjust("10 seconds")
        assert.isUndefined(looking.pollUnsafe())
        change(path)
        yield* add
        yield* TestClock.adjust("2 seconds")
        const found = yield* Fiber.join(looking)
        assert.isTrue(Exit.isFailure(yield* Effect.exit(add)))
        return found.replace(path, "acme.db")
      }).pipe(Effect.provideContext(context))
    }))
    const kept = () => {
      const after = join(freshDirectory(), "acme.db")
      // As after the end of the process, the index of the write-ahead file is gone.
      for (const suffix of ["", "-wal"]) if (existsSync(path + suffix)) copyFileSync(path + suffix, after + suffix)
      const engine = new Engine(after)
      try {
        return engine.prepare("SELECT count(*) FROM things").pluck().get()
      } finally {
        engine.close()
      }
    }
    return { sentence, kept }
  })

const replace = (path: string) => {
  copyFileSync(path, `${path}.copy`)
  renameSync(`${path}.copy`, path)
}

/** Opens the database as a command does. The engine makes the files that it misses, and then reads too little. */
const lookInto = (path: string) => {
  const engine = new Engine(path)
  assert.throws(() => engine.prepare("SELECT count(*) FROM things").get(), /disk I\/O error/)
  engine.close()
}

describe("a SQLite file in use", () => {
  const cases = modes.flatMap((mode) =>
    ["", "-wal", "-shm"].flatMap((suffix) =>
      ([["removed", rmSync], ["replaced", replace]] as const).map(([word, change]) =>
        [mode, suffix, word, (path: string) => change(`${path}${suffix}`)] as const
      )
    )
  )
  it.effect.each(cases)(
    "is reported within seconds as lost (%s) when acme.db%s was %s",
    ([mode, suffix, word, change]) =>
      Effect.gen(function*() {
        const { sentence } = yield* told(mode, change)
        assert.include(sentence, `The database file acme.db${suffix} was ${word} while it was in use`)
      })
  )

  it.effect.each(modes.flatMap((mode) =>
    [
      [mode, "only removed", (path: string) => rmSync(`${path}-wal`)],
      [mode, "replaced by an empty one", (path: string) => {
        rmSync(`${path}-wal`)
        writeFileSync(`${path}-wal`, "")
      }],
      [mode, "removed before a command", (path: string) => {
        rmSync(`${path}-wal`)
        lookInto(path)
      }]
    ] as const
  ))("has every commit (%s) if its write-ahead file was %s", ([mode, , change]) =>
    Effect.gen(function*() {
      const { kept, sentence } = yield* told(mode, change)
      assert.include(sentence, "Nothing is lost")
      assert.strictEqual(kept(), 2)
    }))

  it.effect.each(modes)(
    "has every commit (%s) if the process ends before it looks",
    (synchronous) =>
      Effect.gen(function*() {
        const path = join(freshDirectory(), "acme.db")
        // Another connection that stays open keeps the engine from copying the file at the end.
        const other = yield* Effect.scoped(Effect.gen(function*() {
          const context = yield* Layer.build(Sqlite.layer({ path, synchronous }))
          yield* Effect.provideContext(sql("CREATE TABLE things (id INTEGER PRIMARY KEY)"), context)
          rmSync(`${path}-wal`)
          const other = new Engine(path)
          assert.throws(() => other.prepare("SELECT 1 FROM things").get(), /disk I\/O error/)
          return other
        }))
        assert.deepStrictEqual(other.prepare("SELECT name FROM sqlite_schema").pluck().all(), ["things"])
        other.close()
      })
  )

  it.effect.each(modes)(
    "leaves (%s) a write-ahead file to which another process may have written",
    (mode) =>
      Effect.gen(function*() {
        const { kept, sentence } = yield* told(mode, (path) => replace(`${path}-wal`))
        assert.include(sentence, "writes are lost from now on")
        assert.strictEqual(kept(), 1)
      })
  )
})
