import { rmSync } from "node:fs"
import { join } from "node:path"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { commandLine } from "../support/CommandLine.ts"
import { builtServer, freshDirectory } from "../support/Databases.ts"
import { startServer } from "../support/Server.ts"
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
})
