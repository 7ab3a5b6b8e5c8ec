import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { Database } from "../../src/engine/sql/Database.ts"
import * as Migrations from "../../src/engine/sql/Migrations.ts"
import { freshPostgresUrl } from "../support/Databases.ts"
import { migrationsOf, openDriver, sql } from "../support/Graph.ts"
import { freshPlace } from "../support/RunCommand.ts"
import { useTests } from "../support/UseTests.ts"

/** Makes a migrated database with an encoding that lacks characters. Drops the database when the scope closes. */
const latin = Effect.gen(function*() {
  const url = new URL(yield* Effect.promise(freshPostgresUrl))
  const name = `${url.pathname.slice(1)}_latin`
  const utf8 = yield* openDriver(url.href, 1)
  const run = (text: string) => Effect.provideService(sql(text), Database, utf8)
  yield* Effect.acquireRelease(
    run(`CREATE DATABASE ${name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0`),
    () => Effect.orDie(run(`DROP DATABASE ${name} WITH (FORCE)`))
  )
  url.pathname = name
  const driver = yield* openDriver(url.href, 1)
  yield* Effect.provideService(Effect.flatMap(migrationsOf("postgres"), Migrations.migrate), Database, driver)
  return url.href
})

describe("a PostgreSQL database with another encoding than UTF8", () => {
  const { test } = useTests({})

  test("is refused by a start and by every check, with the statement that makes a right one", () =>
    Effect.gen(function*() {
      const url = yield* latin
      const place = freshPlace()
      const env = { ACME_SVC_DATABASE__URL: url }
      for (const words of [["serve"], ["init"], ["migrate"], ["migrate", "--check"], ["config", "check", "--online"]]) {
        const { code, err, out } = yield* place.run(words, { env })
        assert.include([1, 3], code, words.join(" "))
        assert.match(
          out + err,
          /has the encoding LATIN1, and the service needs UTF8: make another one with CREATE DATABASE name ENCODING 'UTF8'/,
          words.join(" ")
        )
      }
    }))

  test("can be left by a transfer, but not be the target of one", () =>
    Effect.gen(function*() {
      const [from, to] = [yield* latin, yield* Effect.promise(freshPostgresUrl)]
      const place = freshPlace()
      yield* place.run(["migrate"], { env: { ACME_SVC_DATABASE__URL: to } })
      const transfer = (from: string, to: string) => {
        writeFileSync(join(place.directory, "target"), to, { mode: 0o600 })
        return place.run(["transfer", "--to-file", "target", "--yes"], { env: { ACME_SVC_DATABASE__URL: from } })
      }
      const refused = yield* transfer(to, from)
      assert.deepStrictEqual(refused.code, 1)
      assert.match(refused.err, /^--to-file: postgres.* has the encoding LATIN1/)
      const done = yield* transfer(from, to)
      assert.strictEqual(done.code, 0, done.err)
    }))
})
