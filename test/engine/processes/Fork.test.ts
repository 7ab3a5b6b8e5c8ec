import cluster from "node:cluster"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "vitest"
import type { Ended } from "../../../src/engine/processes/Fork.ts"
import { fork } from "../../../src/engine/processes/Fork.ts"
import { freshDirectory } from "../../support/Databases.ts"

describe("fork", () => {
  const { cwd } = cluster.settings
  afterAll(() => cluster.setupPrimary({ cwd }))

  it("tells why the system could not start a process", async () => {
    cluster.setupPrimary({ cwd: join(freshDirectory(), "absent") })
    const ended = await new Promise<Ended>((done) => {
      assert.isUndefined(fork({ ended: done, message: () => {} }).pid)
    })
    assert.deepStrictEqual(ended, { code: null, signal: null, error: "ENOENT" })
  })
})
