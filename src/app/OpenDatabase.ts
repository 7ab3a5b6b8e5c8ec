import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { emit } from "../domain/words/Log.ts"
import * as Files from "../engine/host/Files.ts"
import { mapLayerError } from "../engine/Layers.ts"
import type { Database } from "../engine/sql/Database.ts"
import { readersOf } from "../engine/sql/ReaderSemaphore.ts"
import { withRemedy } from "../engine/sql/Remedies.ts"
import type { Config } from "../settings/AppConfig.ts"
import { maskedDatabaseUrl } from "../settings/DatabaseUrl.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { fromHere } from "./Here.ts"
import type { Host } from "./Host.ts"

const sqlitePrefix = "sqlite://"

/** Returns whether a URL names a SQLite file. */
export const isSqlite = (url: string): boolean => url.startsWith(sqlitePrefix)

const inMemory = `${sqlitePrefix}:memory:`

/** Returns whether the database is a file that does not exist yet. */
export const isAbsent = ({ database }: Pick<Config, "database">): Effect.Effect<boolean, never, Host> => {
  const url = Redacted.value(database.url)
  return isSqlite(url) && url !== inMemory
    ? Effect.flatMap(fromHere(url.slice(sqlitePrefix.length)), Files.isAbsent)
    : Effect.succeed(false)
}

/**
 * What an operator can do if the file of an embedded database does not exist. A missing socket or certificate of
 * PostgreSQL has the same error code.
 */
const absentRemedy =
  "`acme-svc migrate` makes the file that its database.url names, in a directory that is there; relative names start from the working directory"

/**
 * Provides the database of a URL, by default `database.url`. Only the scheme selects the engine, and only that engine
 * is loaded. `name` is the setting that has the URL. A missing file is created only with `creates`: a command that
 * reads records in the wrong directory, or as another user, must not leave a file behind. `serving` means that listings
 * must not delay requests and jobs, and that no command may take the database for itself meanwhile. `reading` means
 * that any server of the URL is accepted, because nothing is written. With `anyEncoding` a database that lacks
 * characters is accepted, so that its rows can be seen and copied.
 */
export const database = (
  { database: settings }: Pick<Config, "database">,
  { anyEncoding = false, creates = false, name = "database.url", reading = false, serving = false }: {
    readonly anyEncoding?: boolean
    readonly creates?: boolean
    readonly name?: string
    readonly reading?: boolean
    readonly serving?: boolean
  } = {}
): Layer.Layer<Database, CommandFailed, Host> => {
  const url = Redacted.value(settings.url)
  const database_url = maskedDatabaseUrl(settings.url)
  const engine = Layer.unwrap(
    Effect.flatMap(fromHere(url.slice(sqlitePrefix.length)), (file) =>
      Effect.promise(async () =>
        isSqlite(url)
          ? (await import("../engine/sql/Sqlite.ts")).layer({
            path: url === inMemory ? ":memory:" : file,
            synchronous: settings.sqlite.synchronous,
            acquire_timeout_ms: settings.acquire_timeout_ms,
            readers: serving ? readersOf(settings.pool_max) : 0,
            mustExist: !creates
          })
          : (await import("../engine/sql/Postgres.ts")).layer({
            ...settings,
            isServing: serving,
            needsUtf8: !anyEncoding,
            ofSeveral: reading ? "any" : "read-write"
          })
      ))
  )
  return engine.pipe(
    Layer.tap(() =>
      emit("db_opened", { database_url, backend: url.slice(0, url.indexOf(":")), pool_max: settings.pool_max })
    ),
    mapLayerError((error) => {
      const { cause: from } = error
      const code = from instanceof Error && "code" in from ? String(from.code) : ""
      const known = from instanceof Error ? withRemedy(code, from.message || from.name) : error.message
      const cause = isSqlite(url) && code === "ENOENT" ? `${known}; ${absentRemedy}` : known
      return new CommandFailed({ code: 1, message: `${name}: ${database_url} cannot be opened: ${cause}` })
    })
  )
}
