import { assert, describe, it } from "vitest"
import { dearestOf } from "../../tools/bench/Dearest.ts"
import { dearestReport, paintFor } from "../../tools/bench/Report.ts"

/** Statements that differ in the time that each has taken. */
const counted = (millis: ReadonlyArray<number>) =>
  millis.map((each) => ({ text: `SELECT ${each}`, calls: 20, millis: each, rows: 40 }))

describe("the dearest statements", () => {
  it("are ordered by their time", () => {
    assert.deepStrictEqual(
      dearestOf([...counted([20, 60]), { text: "SELECT\n  1", calls: 1, millis: 20, rows: 0 }], 10),
      {
        millis: 10,
        list: [
          { text: "SELECT 60", share: 0.6, callsPerIssuance: 2, meanMillis: 3, rowsPerIssuance: 4 },
          { text: "SELECT 20", share: 0.2, callsPerIssuance: 2, meanMillis: 1, rowsPerIssuance: 4 },
          { text: "SELECT 1", share: 0.2, callsPerIssuance: 0.1, meanMillis: 20, rowsPerIssuance: 0 }
        ]
      }
    )
  })

  it("are ten, with their shares of the time of all statements", () => {
    const { list, millis } = dearestOf(counted(Array.from({ length: 20 }, () => 5)), 1)
    assert.strictEqual(millis, 100)
    assert.deepStrictEqual(list.map(({ share }) => share), Array.from({ length: 10 }, () => 0.05))
  })

  it("are printed as a table", () => {
    assert.strictEqual(
      dearestReport(paintFor(false), dearestOf(counted([30, 10]), 10)),
      [
        "  4.00 ms of PostgreSQL's execution time per issuance, without the commits. The dearest statements, per issuance:",
        "             share  calls  rows  mean ms",
        "  SELECT 30   75 %   2.00  4.00    1.500",
        "  SELECT 10   25 %   2.00  4.00    0.500"
      ].join("\n")
    )
  })
})
