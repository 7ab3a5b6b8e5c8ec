import Sqlite from "better-sqlite3"
import type { Row } from "./Driver.ts"

/*
 * A separate program that reads one SQLite file for the process that started it. That process may kill the program at
 * any moment. The program imports as little as possible, so that it starts quickly.
 */

/** A statement to run, with its parameters. */
export interface Question {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

/** The rows, or the reason why there are none. */
export type Answer =
  | { readonly rows: ReadonlyArray<Row> }
  | { readonly code: string; readonly message: string }

const [, , file = ""] = process.argv

let database: Sqlite.Database | undefined

const open = (): Sqlite.Database => {
  const opened = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: 1000 })
  opened.pragma("query_only = ON")
  return opened
}

const answer = ({ params, text }: Question): Answer => {
  try {
    database ??= open()
    return { rows: database.prepare(text).all(...params) as ReadonlyArray<Row> }
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return { code: "code" in error ? String(error.code) : "", message: error.message }
  }
}

// A signal to the whole process group is meant for the service. The service closes the channel when its work has ended.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {})
process.on("disconnect", () => process.exit(0))
process.on("message", (question: Question) => process.send?.(answer(question)))
