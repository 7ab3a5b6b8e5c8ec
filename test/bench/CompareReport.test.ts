import { assert, describe, it } from "vitest"
import { comparisonReport, ratioToFirst } from "../../tools/bench/CompareReport.ts"
import { paintFor } from "../../tools/bench/Report.ts"

const turn = (cpu: number, { databaseCpu, refused = 0 }: { databaseCpu?: number; refused?: number } = {}) => ({
  cpu,
  databaseCpu,
  floor: undefined,
  requests: 7,
  perSecond: 100 / cpu,
  durations: { p50: cpu, p99: 2 * cpu },
  issuances: 10,
  refused,
  otherShare: 0
})

const compared = {
  burden: { act: "issue", isProved: true, concurrency: 16 },
  sides: [
    { name: "sqlite", turns: [turn(4), turn(20), turn(10)] },
    { name: "postgres", turns: [turn(6, { databaseCpu: 2 }), turn(30, { databaseCpu: 30 }), undefined] },
    { name: "other", turns: [turn(2), turn(10, { refused: 2 }), turn(5)] },
    { name: "hung", turns: [undefined, undefined, undefined] }
  ]
} as const

describe("a comparison with other servers", () => {
  it("compares turns of the same round", () => {
    const [, postgres, other, hung] = compared.sides
    const ratio = (side: Parameters<typeof ratioToFirst>[1]) => ratioToFirst(compared, side, ({ cpu }) => cpu)
    assert.deepStrictEqual([ratio(postgres), ratio(other), ratio(hung)], [1.5, 0.5, undefined])
  })

  it("shows medians, ratios to the first side, and what was not finished", () => {
    const rows = comparisonReport(paintFor(false), [compared]).split("\n").slice(2).map((line) =>
      line.trim().split(/ {2,}/)
    )
    assert.deepStrictEqual(
      rows.map((row) => [row[0], row[1], row[2], row[3], row[4], row[5], row.at(-3), row.at(-2)]),
      [
        ["CPU ms", "+ database", "to the first", "a second", "to the first", "ms p50", "refused", "turns"],
        ["http-01, 16 clients", undefined, undefined, undefined, undefined, undefined, undefined, undefined],
        ["SQLite", "10.00", "-", "1.00", "10.0", "1.00", "0", "3 of 3"],
        ["PostgreSQL", "30.00", "30.00", "3.00", "16.7", "0.67", "0", "2 of 3"],
        ["other", "5.00", "-", "0.50", "20.0", "2.00", "2 of 32", "3 of 3"],
        ["hung", "-", "-", "-", "-", "-", "0", "0 of 3"]
      ]
    )
  })
})
