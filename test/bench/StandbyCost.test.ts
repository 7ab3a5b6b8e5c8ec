import { assert, describe, it } from "vitest"
import { paintFor } from "../../tools/bench/Report.ts"
import type { WorkDone } from "../../tools/bench/StandbyCost.ts"
import { comparedRates, standbyReport } from "../../tools/bench/StandbyCost.ts"

const work = (name: string, isCommit: boolean, count: number, heard = 0): WorkDone => ({
  name,
  isCommit,
  done: { count, elapsedMs: 2000, durations: [1, 2, 3], heard }
})

const conditions = comparedRates([
  {
    name: "alone",
    works: [work("commits", true, 4000), work("notifying", true, 400, 400), work("issuances", false, 80)]
  },
  {
    name: "waiting",
    works: [work("commits", true, 2000), work("notifying", true, 100, 100), work("issuances", false, 60)]
  }
])

describe("the cost of a standby", () => {
  it("is computed by comparison with the same work without a standby", () => {
    assert.deepStrictEqual(
      conditions.map(({ rates }) =>
        rates.map(({ heard, perSecond, toNone, toPlain }) => [perSecond, toPlain, toNone, heard])
      ),
      [
        [[2000, 1, 1, 0], [200, 0.1, 1, 200], [40, undefined, 1, undefined]],
        [[1000, 1, 0.5, 0], [50, 0.05, 0.25, 50], [30, undefined, 0.75, undefined]]
      ]
    )
  })

  it("is printed as a table for everything that commits wait for", () => {
    assert.strictEqual(
      standbyReport(paintFor(false), { concurrency: 8, conditions }),
      [
        "8 clients, alone",
        "",
        "             a second  to commits  to no standby  ms p50  p95  notifications/s",
        "  commits        2000        1.00           1.00     2.0  3.0                0",
        "  notifying       200        0.10           1.00     2.0  3.0              200",
        "  issuances      40.0           -           1.00     2.0  3.0                -",
        "",
        "8 clients, waiting",
        "",
        "             a second  to commits  to no standby  ms p50  p95  notifications/s",
        "  commits        1000        1.00           0.50     2.0  3.0                0",
        "  notifying        50        0.05           0.25     2.0  3.0               50",
        "  issuances      30.0           -           0.75     2.0  3.0                -"
      ].join("\n")
    )
  })
})
