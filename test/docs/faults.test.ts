import { assert, describe, it } from "vitest"
import { isFaultRun, runsOf, wordsOf, written } from "../support/DocumentPrograms.ts"

describe("programs that take a long time", () => {
  const run = runsOf("faults")

  it.each(written(isFaultRun))("run as documented: %s", async (command) => {
    const kept = wordsOf(command, /--(?:only|rounds|share) (?:"[^"]*"|\S+)/g)
    const { code, stderr, stdout } = await run(`${kept} --only "newNonce" --share 0.02 --clients 2`)
    assert.strictEqual(code, 0, `${stdout}\n${stderr}`)
    assert.match(stdout, /^2 passed, 0 failed$/m)
  })
})
