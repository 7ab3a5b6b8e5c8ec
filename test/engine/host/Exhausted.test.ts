import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "vitest"
import { isExhaustion } from "../../../src/engine/host/Exhausted.ts"

const program = fileURLToPath(new URL("../../support/exhausted.ts", import.meta.url))

describe("a host without descriptors", () => {
  it(
    "is reported as the cause, whichever resource could not be opened",
    async () => {
      const { stdout } = await promisify(execFile)("sh", [
        "-c",
        "ulimit -n 128; exec \"$0\" \"$1\"",
        process.execPath,
        program
      ])
      const own = "this host has no descriptors, buffers or memory left (EMFILE)"
      assert.deepStrictEqual(JSON.parse(stdout), {
        http01Connect: `ChallengePostponed: ${own}`,
        http01Resolve: `ChallengePostponed: ${own}`,
        dns01: `ChallengePostponed: ${own}`,
        tlsAlpn01: `ChallengePostponed: ${own}`,
        reached: own,
        script: `could not be started: ${own}`
      })
    },
    60_000
  )

  it("is distinguished from a server that refuses or does not answer", () => {
    for (const code of ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"]) assert.isTrue(isExhaustion(code), code)
    for (const code of ["ECONNREFUSED", "ETIMEOUT", "EHOSTUNREACH", "ESERVFAIL", undefined]) {
      assert.isFalse(isExhaustion(code), code)
    }
  })
})
