import { copyFileSync, existsSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { repository } from "../support/Documents.ts"
import type { Serving } from "../support/Place.ts"
import { begun, hasRunLinesOf, Place } from "../support/Place.ts"
import { minimalConfig } from "../support/Server.ts"

describe("docs/operate/backup-and-restore.md", () => {
  let place: Place
  let serving: Serving
  beforeAll(async () => {
    ;({ place, serving } = await begun())
  })
  afterAll(() => serving.stop())

  it("has commands that copy the database completely", async () => {
    // Not every machine has the sqlite3 shell, but every machine can run the statement.
    symlinkSync(join(repository, "node_modules"), place.at("node_modules"))
    const shell = "new (require(\"better-sqlite3\"))(\"sqlite.db\", { fileMustExist: true }).exec(process.argv[1])"
    place.stand("sqlite3 \"file:sqlite.db?mode=rw\"", `'${process.execPath}' -e '${shell}'`)
    await place.succeed("vacuum")
    assert.strictEqual(statSync(place.at("backup.db")).mode & 0o777, 0o600)
    assert.strictEqual(await place.succeed("checkCopy"), "0 migration(s) pending.\n")
    const restored = await Place.make()
    copyFileSync(place.at("backup.db"), restored.at("sqlite.db"))
    writeFileSync(restored.at("config.toml"), minimalConfig)
    assert.strictEqual((await restored.run("acme-svc migrate --check")).code, 0)
  })

  it("has commands that end the sessions and tokens that came back with the backup", async () => {
    await place.succeed("keepList")
    assert.isTrue(existsSync(place.at("ca.crl.before")))
    assert.include(await place.succeed("endSessions"), "0 session(s) ended.")
    await place.succeed("tokens")
    await place.succeed("users")
  })

  it("has commands that revoke certificates without an order", async () => {
    assert.include(await place.succeed("listBefore"), "Revoked")
    const crl = await place.run("acme-svc crl list")
    const [, issuer = ""] = /^([0-9a-f]{64}) /m.exec(crl.stdout) ?? []
    place.stand("ISSUER", issuer)
    assert.match(await place.succeed("crlImport"), /^imported +0$/m)
    assert.include(await place.succeed("restored"), "0 of 0 row(s)")
    assert.include(await place.succeed("lost"), "0 of 0 row(s)")
    place.stand("SERIAL", "7a0b1c")
    assert.include(await place.succeed("ofSerial"), "0 of 0 row(s)")
    assert.include(await place.succeed("crlRevoke"), "Certificate 7a0b1c is revoked")
  })
})

hasRunLinesOf("backup")
