import SqliteDatabase from "better-sqlite3"
import { spawnSync } from "node:child_process"
import { cpSync, existsSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "vitest"
import { builtServer, freshPostgresUrl } from "../support/Databases.ts"
import { repository } from "../support/Documents.ts"
import { hasRunLinesOf, Place, settled } from "../support/Place.ts"

describe("docs/operate/service.md", () => {
  let place: Place
  beforeAll(async () => {
    await builtServer()
    place = await Place.make()
  })

  it("begins with init", async () => {
    assert.include(await place.succeed("init"), "created configuration config.toml")
    assert.strictEqual(await place.succeed("init"), "Nothing to do: everything exists.\n")
    assert.include(await place.succeed("profiles"), `http://localhost:${place.port}/profile/default/directory`)
  })

  it("starts a service that the health command reports as healthy", async () => {
    assert.strictEqual((await place.paste("health")).code, 1)
    const serving = await place.serve("serve", settled)
    assert.strictEqual(await place.succeed("health"), "")
    assert.strictEqual(await place.succeed("healthWorker"), "")
    assert.include((await serving.stop()).stdout, "server_shutdown_completed")
    assert.strictEqual((await place.paste("healthWorker")).code, 1)
  })

  it("shows more in the log on request", async () => {
    const serving = await place.serve("serveDebug", settled)
    await place.succeed("health")
    assert.match((await serving.stop()).stdout, / DEBUG request_completed .*uri=\/health/)
  })

  it("migrates the database", async () => {
    const fresh = await Place.make()
    writeFileSync(fresh.at("config.toml"), "[profiles.default]\n")
    const behind = await fresh.paste("migrateCheck")
    assert.strictEqual(behind.code, 3, behind.stderr)
    assert.match(await fresh.succeed("migrate"), /^[1-9]\d* migration\(s\) applied\.$/m)
    assert.strictEqual(await fresh.succeed("migrateCheck"), "0 migration(s) pending.\n")
  })

  it("makes a backup while the service runs and the database changes all the time", async () => {
    const serving = await place.serve("serve", settled)
    const installed = await Place.make()
    symlinkSync(join(repository, "node_modules"), installed.at("node_modules"))
    installed.replacements.push(["/var/lib/acme-svc", place.directory])
    const writer = new SqliteDatabase(place.at("sqlite.db"))
    const insert = writer.prepare("INSERT INTO nonces (value, created_at) VALUES (?, 1)")
    const fill = writer.transaction(() => {
      for (let row = 0; row < 20_000; row++) insert.run(`${row}-${"x".repeat(1000)}`)
    })
    fill()
    let written = 0
    const writing = setInterval(() => insert.run(`more-${written++}`))
    await installed.succeed("backup")
    clearInterval(writing)
    writer.close()
    await serving.stop()
    assert.isAbove(written, 0)
    const copy = place.at("backup.db")
    assert.strictEqual(statSync(copy).mode & 0o777, 0o600)
    assert.notStrictEqual((await installed.paste("backup")).code, 0, "the copy exists already")
    installed.replacements.push(["sqlite.db", "absent.db"])
    assert.notStrictEqual((await installed.paste("backup")).code, 0, "there is no database")
    assert.isFalse(existsSync(place.at("absent.db")))
    const restored = await Place.make()
    cpSync(copy, restored.at("sqlite.db"))
    writeFileSync(restored.at("config.toml"), "[profiles.default]\n")
    assert.strictEqual(await restored.succeed("migrateCheck"), "0 migration(s) pending.\n")
  })

  it("moves the service to another database", async () => {
    const target = new URL(await freshPostgresUrl())
    const moving = await Place.make({ PGPASSWORD: decodeURIComponent(target.password) })
    target.password = ""
    await moving.succeed("init")
    moving.stand("postgres://acme@db.example/acme", `'${target.href}'`)
    assert.match(await moving.succeed("migrateTarget"), /^[1-9]\d* migration\(s\) applied\.$/m)
    // The operator that init has made, the link that is owed, and their row in the audit trail.
    assert.match(await moving.succeed("transfer"), /^3 row\(s\) copied\. Set database\.url/m)
  })

  it("installs the completion for the shell", async () => {
    const script = await place.succeed("completions")
    assert.strictEqual(spawnSync("bash", ["-n"], { input: script }).status, 0)
    assert.include(script, "complete ")
  })
})

hasRunLinesOf("operations")
