import type { Client } from "pg"

/*
 * Runs a file of statements as `psql --file` does, by sending one statement after the other. An error ends the run only
 * if the file says so.
 */

/** Returns the statements of a file, without comments and without psql's own commands. */
const statementsOf = (file: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let statement = ""
  for (const line of file.split("\n")) {
    if (line.startsWith("--") || line.startsWith("\\") || (line === "" && statement === "")) continue
    statement += `${line}\n`
    const isQuoted = (statement.match(/\$\$/g) ?? []).length % 2 === 1
    if (!line.endsWith(";") || isQuoted) continue
    found.push(statement)
    statement = ""
  }
  return found
}

/** The exit code of a run, and the first error. */
export interface PsqlEnd {
  readonly code: 0 | 3
  readonly error: string | undefined
}

/** Runs a file over a connection, and closes the connection at the end as psql does. */
export const psql = async (client: Client, file: string): Promise<PsqlEnd> => {
  const stops = /^\\set ON_ERROR_STOP on$/m.test(file)
  let error: string | undefined
  try {
    for (const statement of statementsOf(file)) {
      try {
        await client.query(statement)
      } catch (cause) {
        error ??= cause instanceof Error ? cause.message : String(cause)
        if (stops) return { code: 3, error }
      }
    }
    return { code: 0, error }
  } finally {
    await client.end()
  }
}
