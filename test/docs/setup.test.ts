import { readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { setupQuestions } from "../../src/app/SetupQuestions.ts"
import { builtServer } from "../support/Databases.ts"
import { bodiesOf, repository, text } from "../support/Documents.ts"
import { useOwnPostgres } from "../support/OwnPostgres.ts"
import { hasRunLinesOf, Place, settled } from "../support/Place.ts"

/*
 * The commands of docs/start/package.md, docs/operate/databases.md and docs/start/postgresql.md that make a
 * configuration or a database.
 */

describe("the documents about a first configuration", () => {
  const { password, urlOf } = useOwnPostgres()
  beforeAll(builtServer)

  it("list every question that has no other before it", () => {
    const [, table = ""] = /## What `setup` asks\n([^]*?)\n\nEach question/.exec(text("docs/start/package.md")) ?? []
    const listed = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)
    assert.deepStrictEqual(listed, setupQuestions.filter(({ of }) => of === undefined).map(({ name }) => name))
    for (const { name, words = [] } of setupQuestions) {
      for (const [word] of name === "panel" ? [] : words) assert.include(table, `\`${word}\``)
    }
  })

  it("make a database, whose URL the service uses", async () => {
    const place = await Place.make({ PGPASSWORD: password() })
    place.stand("postgres://postgres@db.example/postgres", urlOf())
    assert.match(await place.succeed("printDatabase"), /^CREATE DATABASE "acme" OWNER "acme"/m)
    assert.match(await place.succeed("initDatabase"), /^created database +acme$/m)
    assert.strictEqual(await place.succeed("initDatabase"), "Nothing to do: everything exists.\n")
    const serving = await place.serve("serve", settled)
    assert.include((await serving.stop()).stdout, "backend=postgres")
  })

  it("make the database of a clone", async () => {
    const place = await Place.make({ PGPASSWORD: password() })
    for (const folder of ["dist", "migrations", "panel", "package.json", "node_modules"]) {
      symlinkSync(join(repository, folder), place.at(folder))
    }
    place.stand("postgres://postgres@localhost/postgres", `'${urlOf()}' --database-name clone`)
    assert.match(await place.succeed("initDatabaseOfClone"), /^created database +clone$/m)
  })

  it("answer the questions in a file", async () => {
    const place = await Place.make({})
    const [answers = ""] = bodiesOf("docs/start/package.md", "toml")
    const here = answers.replaceAll("/var/lib/acme-svc", place.directory)
      .replace("postgres://postgres@db.example/postgres", urlOf())
    writeFileSync(place.at("answers.toml"), `${here}\ndatabase_name = "answered"\n`)
    writeFileSync(place.at("postgres.password"), `${password()}\n`, { mode: 0o600 })
    writeFileSync(place.at("ann.password"), "seven grey herons at dusk\n", { mode: 0o600 })
    const said = await place.succeed("setupAnswers")
    assert.match(said, /^created database +answered$/m)
    assert.match(said, /^created operator +ann$/m)
    assert.match(readFileSync(place.at("config.toml"), "utf8"), /^allow = \["10\.0\.0\.0\/8"\]$/m)
  })
})

hasRunLinesOf("setup")
