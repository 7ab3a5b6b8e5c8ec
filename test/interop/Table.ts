/** The result of one scenario of one client on one database. */
export interface Outcome {
  readonly database: string
  readonly client: string
  readonly challenge: string
  readonly scenario: string
  readonly milliseconds: number
  readonly error?: string
}

/** Returns a table with a line for every scenario of every client, and with a column for every database. */
export const tableOf = (outcomes: ReadonlyArray<Outcome>, databases: ReadonlyArray<string>): string => {
  const rows = new Map<string, Array<string>>()
  for (const { challenge, client, database, error, milliseconds, scenario } of outcomes) {
    const key = JSON.stringify([client, challenge, scenario])
    const row = rows.get(key) ?? [client, challenge, scenario]
    rows.set(key, row)
    row[3 + databases.indexOf(database)] = `${error === undefined ? "ok" : "FAILED"} ${
      (milliseconds / 1000).toFixed(1)
    } s`
  }
  const all = [["client", "challenge", "scenario", ...databases], ...rows.values()]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? []
  return all.map((row) => widths.map((width, column) => (row[column] ?? "").padEnd(width)).join("  ").trimEnd()).join(
    "\n"
  )
}

/** How many lines of what a failed client said are printed. */
const mostSaid = 20

/**
 * Returns a line for each failed scenario, and after it the end of what the client said. `.ci/run` repeats the first
 * line at its end.
 */
export const failuresOf = (outcomes: ReadonlyArray<Outcome>): string =>
  outcomes.flatMap(({ challenge, client, database, error, scenario }) => {
    if (error === undefined) return []
    const [first = "", ...said] = error.trimEnd().split("\n")
    return [
      `FAILED ${[client, challenge, scenario].filter((word) => word !== "").join(" ")} on ${database}: ${first}\n`,
      ...said.slice(-mostSaid).map((line) => `    ${line}\n`)
    ]
  }).join("")
