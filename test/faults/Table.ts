import type { DatabaseName } from "./Site.ts"
import type { Outcome } from "./Stage.ts"

/** The result of one fault on one database. */
export interface Row {
  readonly fault: string
  readonly database: DatabaseName
  readonly seconds: number
  readonly outcome?: Outcome
  /** The differences between the service and its documentation, apart from losses and duplicates. */
  readonly error?: string
  /** The reason why the fault could not be tested on this machine. */
  readonly notRun?: string
}

/** Returns whether the fault was tested and every fact existed exactly once. */
export const hasPassed = ({ error, outcome }: Row): boolean =>
  error === undefined && outcome !== undefined && outcome.lost.length === 0 && outcome.twice.length === 0

const verdictOf = (row: Row): string => row.notRun !== undefined ? "not run" : hasPassed(row) ? "ok" : "FAILED"

const columns = [
  "fault",
  "database",
  "injected",
  "acknowledged before",
  "lost after",
  "twice",
  "verdict",
  "seconds",
  "figures"
] as const

/**
 * Returns a table with a line for every fault on every database. Below the table are the faults that were not tested,
 * with the reasons.
 */
export const tableOf = (rows: ReadonlyArray<Row>): string => {
  const cells = rows.map((row) => {
    const { outcome } = row
    const figures = outcome === undefined
      ? ["-", "-", "-", "-"]
      : [outcome.injected, outcome.acknowledged, outcome.lost.length, outcome.twice.length].map(String)
    return [row.fault, row.database, ...figures, verdictOf(row), row.seconds.toFixed(0), outcome?.figures ?? ""]
  })
  const all: ReadonlyArray<ReadonlyArray<string>> = [columns, ...cells]
  const widths = columns.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)))
  const isText = (column: number) => column < 2 || column === 6 || column === 8
  const lines = all.map((row) =>
    widths.map((width, column) => {
      const cell = row[column] ?? ""
      return isText(column) ? cell.padEnd(width) : cell.padStart(width)
    }).join("  ").trimEnd()
  )
  const skipped = rows.flatMap(({ database, fault, notRun }) =>
    notRun === undefined ? [] : `not run: ${fault} on ${database}, because ${notRun}`
  )
  return [...lines, ...skipped.length > 0 ? [""] : [], ...skipped].join("\n")
}
