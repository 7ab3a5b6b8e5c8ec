import { assert, describe, it } from "vitest"
import { benchmarked, isBenchmark, isOfOperators, written } from "../support/DocumentPrograms.ts"

/* The documented benchmarks of the acts of operators: lists, pages and sign-ins. */

describe("programs that take a long time", () => {
  const run = benchmarked()

  it.each(written((command) => isBenchmark(command) && isOfOperators(command)))(
    "run as documented: %s",
    async (command) => {
      const { code, stderr, stdout } = await run(command)
      assert.strictEqual(code, 0, `${stdout}\n${stderr}`)
      assert.match(stdout, /issuances|jobs\/s|sign-ins/)
    }
  )
})
