import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { freshDirectory } from "../support/Databases.ts"
import { startServer } from "../support/Server.ts"

/*
 * A process whose background work fails again and again. In the test, the process gives up after fewer failures than
 * usual, so that the test does not take minutes.
 */

describe("background work that always fails", () => {
  it("ends the process in order, with exit code 1 and the name of the work", async () => {
    const poison = freshDirectory()
    const server = await startServer({
      from: "source",
      env: {
        NODE_OPTIONS: `--import ${new URL("../faults/Poisoned.ts", import.meta.url).href}`,
        ACME_TEST_POISON: poison,
        ACME_TEST_POISON_END: "2"
      }
    })
    writeFileSync(join(poison, "job_claims"), "always")
    const { fields } = await server.waitForEvent("server_loop_given_up")
    assert.strictEqual(fields["loop"], "job_claims")
    assert.strictEqual((await server.waitForEvent("server_shutdown_started")).fields["signal"], "loop_given_up")
    await server.waitForEvent("server_shutdown_completed")
    assert.strictEqual((await server.exited()).code, 1)
    assert.include(server.stderr(), "The background work job_claims has died")
  })
})
