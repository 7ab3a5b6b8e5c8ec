import Sqlite from "better-sqlite3"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Connection, Row } from "./Driver.ts"
import { SqlError } from "./SqlError.ts"

/**
 * The options of the embedded engine. `path` is `database.url` after `sqlite://`, or `:memory:`; `synchronous` is
 * `database.sqlite.synchronous`.
 */
export interface SqliteOptions {
  readonly path: string
  readonly synchronous: "normal" | "full" | "grouped"
  /** How long a transaction waits for the only connection that writes. */
  readonly acquire_timeout_ms?: number
  /** How many separate processes may read. A command has none, because it has no other work that a read could delay. */
  readonly readers?: number
  /** Whether to open only an existing file, without changing its journal mode, which is stored in the file. */
  readonly mustExist?: boolean
}

const mostPrepared = 500

/** The one connection that writes. */
export interface Opened {
  readonly connection: Connection
  /** Whether commits only append to the write-ahead file. */
  readonly isAppending: boolean
  /** Commits, and calls `done` in the same step. */
  readonly commit: (done: () => void) => Effect.Effect<void, SqlError>
  /** Lets the connection stay open at the end. Closing it would copy the write-ahead file and delete it. */
  readonly abandon: () => void
  /** Returns a number that changes when another connection has committed. */
  readonly dataVersion: () => unknown
}

/** Opens the file (docs/contribute/decisions/hot-path.md, "Statements of the embedded engine"). */
export const connect = (
  { mustExist = false, path, synchronous }: SqliteOptions
): Effect.Effect<Opened, SqlError, Scope.Scope> =>
  Effect.gen(function*() {
    let isAbandoned = false
    const engine = yield* Effect.acquireRelease(
      Effect.try({
        try: () => new Sqlite(path),
        catch: (cause) => new SqlError({ cause, message: "cannot open the database file" })
      }),
      (opened) => Effect.sync(() => isAbandoned ? undefined : opened.close())
    )
    const prepared = new Map<string, Sqlite.Statement>()
    const prepare = (text: string): Sqlite.Statement => {
      const known = prepared.get(text)
      if (known !== undefined) return known
      // The service has few different statements. Lists with filters are the only source of more.
      if (prepared.size >= mostPrepared) prepared.clear()
      const fresh = engine.prepare(text)
      prepared.set(text, fresh)
      return fresh
    }
    const execute = (text: string, params: ReadonlyArray<unknown>) =>
      Effect.try({
        try: (): ReadonlyArray<Row> => {
          const statement = prepare(text)
          if (statement.reader) return statement.all(...params) as ReadonlyArray<Row>
          statement.run(...params)
          return []
        },
        catch: (cause) => new SqlError({ cause, message: "the statement failed" })
      })
    const connection: Connection = { execute, executeRaw: execute }
    if (!mustExist) yield* connection.executeRaw("PRAGMA journal_mode = WAL", [])
    const [journal] = yield* execute("PRAGMA journal_mode", [])
    // A copy of a database has another mode until it is served.
    const isAppending = synchronous === "grouped" && journal?.["journal_mode"] === "wal"
    const atCommit = isAppending ? "normal" : synchronous === "grouped" ? "full" : synchronous
    for (const pragma of ["busy_timeout = 20", "foreign_keys = ON", `synchronous = ${atCommit}`]) {
      yield* connection.executeRaw(`PRAGMA ${pragma}`, [])
    }
    const version = engine.prepare("PRAGMA data_version").pluck()
    const committing = prepare("COMMIT")
    return {
      connection,
      isAppending,
      commit: (done) =>
        Effect.try({
          try: () => {
            committing.run()
            done()
          },
          catch: (cause) => new SqlError({ cause, message: "the statement failed" })
        }),
      abandon: () => void (isAbandoned = true),
      dataVersion: () => version.get()
    }
  })
