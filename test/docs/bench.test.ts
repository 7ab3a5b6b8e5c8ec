import { assert, describe, it } from "vitest"
import { benchmarked, isBenchmark, isOfOperators, written } from "../support/DocumentPrograms.ts"
import { isInstalled } from "../support/Installed.ts"

/* The documented benchmarks of the acts of clients. */

/** The program that a benchmark needs in addition, if there is one. */
const neededBy = (command: string): "pebble" | "strace" | undefined =>
  /--(?:peers|relay)\b/.test(command) ? "pebble" : /--slow-disk\b/.test(command) ? "strace" : undefined

describe("programs that take a long time", () => {
  const run = benchmarked()

  it.each(written((command) => isBenchmark(command) && !isOfOperators(command)))(
    "run as documented: %s",
    async (command) => {
      const { code, stderr, stdout } = await run(command)
      const needed = neededBy(command)
      if (needed !== undefined && !isInstalled(needed)) {
        assert.strictEqual(code, 1, `${stdout}\n${stderr}`)
        return assert.include(stderr, `${needed} is not installed`)
      }
      assert.strictEqual(code, 0, `${stdout}\n${stderr}`)
      assert.match(stdout, /issuances|jobs\/s|sign-ins|connections|first answer/)
    }
  )
})
