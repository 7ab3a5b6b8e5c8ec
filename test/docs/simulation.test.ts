import { assert, describe, it } from "vitest"
import { isSimulation, runsOf, wordsOf, written } from "../support/DocumentPrograms.ts"

describe("programs that take a long time", () => {
  const run = runsOf("simulate")

  it.each(written(isSimulation))("run as documented: %s", async (command) => {
    const kept = wordsOf(command, /--seeds \S+/g)
    const few = kept.includes("--planted") ? "--bug 1 --seeds 30" : kept.includes("--seed ") ? "" : "--seeds 2"
    const { code, stderr, stdout } = await run(`${kept} ${few}`)
    assert.strictEqual(code, 0, `${stdout}\n${stderr}`)
    assert.match(stdout, /^[12] passed, 0 failed$/m)
  })
})
