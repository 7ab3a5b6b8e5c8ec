import { assert, describe, it } from "vitest"
import { endingsChart } from "../../../../src/surfaces/panel/charts/EndingBars.ts"

/* Certificates that end, by week (docs/contribute/decisions/panel.md, "Charts"). */

const week = 604_800
const begin = Date.UTC(2026, 10, 30) / 1000
const weeksOf = (...counts: ReadonlyArray<number>) =>
  counts.map((count, index) => ({ start: begin + index * week, count, isCut: count === 100_000 }))

describe("a chart of endings", () => {
  it("contains no script, style, event handler or colour, in both sizes", () => {
    const { svg } = endingsChart(weeksOf(3, 0, 100_000))
    assert.notMatch(svg, /<script|<style|\sstyle=|\son\w+=|#[0-9a-f]{3,6}\b|rgb\(|href/i)
    assert.match(svg, /class="chart wide"[^]*class="chart narrow"/)
  })

  it("has the days and the count of each week as a title and as a row", () => {
    const { isCut, rows, svg, total } = endingsChart(weeksOf(3, 0, 100_000))
    assert.deepStrictEqual([...svg.matchAll(/<title>([^<]*)</g)].map(([, title]) => title), [
      "30 Nov–6 Dec: 3",
      "7 Dec–13 Dec: 0",
      "14 Dec–20 Dec: 100\u202f000 or more"
    ])
    assert.deepStrictEqual(rows[2], { when: "14 Dec–20 Dec", count: 100_000, isCut: true })
    assert.deepStrictEqual([total, isCut], [100_003, true])
  })

  it("shows even one certificate next to thousands, and a week that was not counted to its end otherwise", () => {
    const { svg } = endingsChart(weeksOf(1, 100_000))
    const [, height = ""] = /class="issued" d="M[\d.]+ [\d.]+v-([\d.]+)/.exec(svg) ?? []
    assert.isAtLeast(Number(height), 2)
    assert.match(svg, /class="issued left-area" d="M/)
  })

  it("can be drawn without data", () => {
    for (const weeks of [[], weeksOf(0)]) assert.notMatch(endingsChart(weeks).svg, /NaN|Infinity|undefined/)
  })
})
