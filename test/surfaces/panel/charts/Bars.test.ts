import { assert, describe, it } from "vitest"
import { barPatterns, swatch, trendChart } from "../../../../src/surfaces/panel/charts/Bars.ts"
import { bucketLabel, countTicks, labelEvery, startLabel } from "../../../../src/surfaces/panel/charts/Ticks.ts"

/* Trends as bars (docs/contribute/decisions/panel.md, "Charts"). */

const day = 86_400
const begin = Date.UTC(2026, 10, 1) / 1000
const bar = (index: number, counts: object = {}) => ({
  start: begin + index * day,
  issued: 0,
  refused: 0,
  revoked: 0,
  isKept: true,
  ...counts
})
const many = Array.from({ length: 30 }, (_, index) => bar(index, { issued: 1000 + index, refused: index % 3 }))

describe("the ticks of an axis", () => {
  it("are round whole numbers, are few, and reach the largest count", () => {
    assert.deepStrictEqual(countTicks(0, 4), [0, 1])
    assert.deepStrictEqual(countTicks(1, 4), [0, 1])
    assert.deepStrictEqual(countTicks(3, 4), [0, 1, 2, 3])
    assert.deepStrictEqual(countTicks(11, 4), [0, 5, 10, 15])
    assert.deepStrictEqual(countTicks(1204, 4), [0, 500, 1000, 1500])
    for (let most = 0; most < 100_000; most += 37) {
      const ticks = countTicks(most, 4)
      assert.isAtMost(ticks.length, 5)
      assert.isAtLeast(ticks.at(-1) ?? 0, most)
      assert.isTrue(ticks.every(Number.isInteger))
    }
  })

  it("are labelled with hours, and with the day at its first hour", () => {
    assert.strictEqual(startLabel(begin), "1 Nov")
    assert.strictEqual(startLabel(begin + 3600), "01:00")
    assert.strictEqual(bucketLabel(begin, 3600), "1 Nov, 00:00–01:00")
    assert.strictEqual(bucketLabel(begin + 18 * 3600, 6 * 3600), "1 Nov, 18:00–00:00")
    assert.strictEqual(bucketLabel(begin, day), "1 Nov")
  })

  it("have labels that do not overlap", () => {
    for (const seconds of [3600, 6 * 3600, day]) {
      for (const band of [9, 11, 28, 35]) assert.isAtLeast(labelEvery(seconds, band, 46) * band, 46)
    }
  })
})

describe("a chart of a trend", () => {
  it("contains no script, style, event handler or colour, in both sizes", () => {
    const { svg } = trendChart(many, day)
    const all = `${barPatterns}${svg}${swatch("refused")}`
    assert.notMatch(all, /<script|<style|\sstyle=|\son\w+=|#[0-9a-f]{3,6}\b(?!-)|rgb\(|href/i)
    assert.match(svg, /class="chart wide"[^]*class="chart narrow"/)
    assert.strictEqual(new Set([...all.matchAll(/\bid="([^"]*)"/g)].map(([, id]) => id)).size, 3)
    assert.isBelow(svg.length, 16_000)
  })

  it("has a title for each bucket with its counts, and a remark if the bucket is not over yet", () => {
    const { svg } = trendChart([bar(0, { issued: 12_345, refused: 1 }), bar(1, { revoked: 2 })], day)
    const titles = [...svg.matchAll(/<title>([^<]*)<\/title>/g)].map(([, title]) => title)
    assert.deepStrictEqual(titles, [
      "1 Nov UTC: 12\u202f345 issued, 1 refused, 0 revoked",
      "2 Nov UTC, so far: 0 issued, 0 refused, 2 revoked"
    ])
    assert.include(svg, "per day, UTC")
    assert.include(trendChart(many, 21_600).svg, "per 6 hours, UTC")
  })

  it("shows even one refusal next to a thousand certificates", () => {
    const { svg } = trendChart([bar(0, { issued: 100_000, refused: 1 })], day)
    const [, height = ""] = /url\(#bar-refused\)" d="M[\d.]+ [\d.]+v-([\d.]+)/.exec(svg) ?? []
    assert.isAtLeast(Number(height), 2)
  })

  it("never draws periods without data as zero", () => {
    const { rows, svg, totals } = trendChart([bar(0, { issued: 9, isKept: false }), bar(1, { issued: 2 })], day)
    assert.include(svg, "not kept</text>")
    assert.include(svg, "<title>1 Nov UTC: not kept</title>")
    assert.deepStrictEqual(totals, { issued: 2, refused: 0, revoked: 0 })
    assert.deepStrictEqual(rows.map(({ isKept, when }) => [when, isKept]), [["1 Nov", false], ["2 Nov, so far", true]])
    assert.notInclude(trendChart([bar(0)], day).svg, "not kept")
  })

  it("can be drawn without data", () => {
    for (const bars of [[], [bar(0)]]) assert.notMatch(trendChart(bars, day).svg, /NaN|Infinity|undefined/)
  })
})
