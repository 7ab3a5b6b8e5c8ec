import { assert, describe, it } from "vitest"
import { readOptions } from "../../tools/bench/Options.ts"
import { paintFor } from "../../tools/bench/Report.ts"
import { tokenCostReport } from "../../tools/bench/TokenCost.ts"

describe("the cost of a key in a token", () => {
  it("is printed beside that of a key in a file", () => {
    const cost = { profile: "default", issuances: 100, perSecond: 80, moduleCpu: 0 }
    assert.strictEqual(
      tokenCostReport(paintFor(false), [
        { ...cost, name: "a file", cpu: 6, ratio: 1 },
        { ...cost, name: "a token", cpu: 6.6, moduleCpu: 0.4, ratio: 1.1 }
      ], readOptions(["--token", "--concurrency", "16"])),
      [
        "The key of the CA (ecdsa-p256), 16 clients, medians of 10 turns",
        "",
        "              issuances  CPU ms  of it the module  to a file  issuances/s",
        "  in a file         100    6.00              0.00       1.00         80.0",
        "  in a token        100    6.60              0.40       1.10         80.0"
      ].join("\n")
    )
  })
})
