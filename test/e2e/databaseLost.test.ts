import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { AcmeSession } from "../support/AcmeSession.ts"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { minimalConfig, startServer } from "../support/Server.ts"
import type { Server } from "../support/Server.ts"

describe("a database file that is deleted while the service runs", () => {
  const directory = freshDirectory()
  const running: Array<Server> = []
  beforeAll(builtServer)
  afterAll(async () => {
    for (const server of running) await server.dispose()
  })

  it("ends the process, and the next start refuses an empty database unless a flag accepts it", async () => {
    const first = await startServer({ directory })
    running.push(first)
    for (const suffix of ["", "-wal", "-shm"]) rmSync(join(directory, `sqlite.db${suffix}`), { force: true })
    assert.strictEqual((await first.exited()).code, 1)
    const { fields } = await first.waitForEvent("server_fatal_error")
    assert.include(String(fields["error"]), "was removed while it was in use")

    const refused = await commandLine(["serve"], { directory })
    assert.strictEqual(refused.code, 3)
    assert.match(refused.stderr, /ca\.crl is its list number 1.*--accept-empty-database/)
    assert.strictEqual((await commandLine(["serve"], { directory })).code, 3, "nor the one that was begun meanwhile")

    const accepted = await startServer({ directory, flags: ["--accept-empty-database"] })
    running.push(accepted)
    const told = await accepted.waitForEvent("local_ca_crl_republished")
    assert.strictEqual(told.fields["crl_number"], "2")
    assert.strictEqual((await accepted.stop()).code, 0)
  })

  it.each(["full", "normal", "grouped"])(
    "loses nothing (%s) if only the write-ahead file is deleted, even before a command",
    async (synchronous) => {
      const place = {
        directory: freshDirectory(),
        config: `${minimalConfig}[database.sqlite]\nsynchronous = "${synchronous}"\n`
      }
      const first = await startServer(place)
      running.push(first)
      const session = await AcmeSession.open(first.directoryUrl)
      await session.register()
      rmSync(join(place.directory, "sqlite.db-wal"))
      const { url } = await session.newOrder(["acknowledged.example"])
      session.close()
      await commandLine(["admin", "user", "list"], place) // The command cannot read the database, and leaves an empty file.
      assert.strictEqual((await first.exited()).code, 1)
      const { fields } = await first.waitForEvent("server_fatal_error")
      assert.match(
        String(fields["error"]),
        /sqlite\.db-wal was (?:removed|replaced) while it was in use\. Nothing is lost/
      )

      const second = await startServer(place)
      running.push(second)
      const later = await AcmeSession.open(second.directoryUrl, { key: session.key })
      await later.register({ onlyReturnExisting: true })
      const { pathname } = new URL(url)
      assert.strictEqual((await later.order(new URL(pathname, second.directoryUrl).href)).status, "pending")
      later.close()
      assert.strictEqual((await second.stop()).code, 0)
    }
  )
})
