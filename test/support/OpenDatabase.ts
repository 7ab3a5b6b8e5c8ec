import { Context, Effect, Layer, Redacted } from "effect"
import type { Scope } from "effect"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Driver } from "../../src/engine/sql/Driver.ts"
import * as Postgres from "../../src/engine/sql/Postgres.ts"
import type { SqlError } from "../../src/engine/sql/SqlError.ts"
import * as Sqlite from "../../src/engine/sql/Sqlite.ts"
import { patienceMs } from "./Patience.ts"

/* A database that tests and other programs read without the service. */

/** Opens a database as the service does, but waits longer for a connection, because the machine may be busy. */
const openDatabase = (
  url: string,
  poolMax = 10,
  acquireMillis = patienceMs,
  readers = 0
): Layer.Layer<Database, SqlError> =>
  url.startsWith("sqlite://")
    ? Sqlite.layer({
      path: url.slice("sqlite://".length),
      synchronous: "normal",
      acquire_timeout_ms: acquireMillis,
      readers
    })
    : Postgres.layer({ url: Redacted.make(url), pool_max: poolMax, acquire_timeout_ms: acquireMillis })

/** Returns the driver of a database that is open until the scope ends. */
export const openDriver = (
  url: string,
  poolMax?: number,
  acquireMillis?: number,
  readers?: number
): Effect.Effect<Driver, never, Scope.Scope> =>
  Effect.orDie(Effect.map(Layer.build(openDatabase(url, poolMax, acquireMillis, readers)), Context.get(Database)))

/** A row as the engine returns it. */
export interface RawRow {
  readonly [column: string]: unknown
}

/** Returns the rows of a statement, which is sent as it is. The rows are not decoded. */
export const sql = (
  text: string,
  params: ReadonlyArray<unknown> = []
): Effect.Effect<ReadonlyArray<RawRow>, never, Database> =>
  Effect.orDie(Effect.flatMap(
    Database,
    (driver) =>
      driver.single({ text: text, order: [], reads: /^\s*SELECT/i.test(text) }, params) as Effect.Effect<
        ReadonlyArray<RawRow>,
        SqlError
      >
  ))

/** Runs {@link sql} on a database that is opened only for this. */
export const sqlAt = (url: string, text: string, params?: ReadonlyArray<unknown>): Promise<ReadonlyArray<RawRow>> =>
  Effect.runPromise(Effect.scoped(
    Effect.flatMap(openDriver(url, 1), (driver) => Effect.provideService(sql(text, params), Database, driver))
  ))

/** Returns an id as a literal of a statement. */
export const idLiteral = (dialect: Driver["dialect"], id: string): string =>
  dialect === "sqlite" ? `X'${id.replaceAll("-", "")}'` : `'${id}'`

/** Returns the id that an engine has stored, in the form that it has in URLs and in the log. */
export const idText = (raw: unknown): string => {
  const hex = raw instanceof Uint8Array ? Buffer.from(raw).toString("hex") : String(raw).replaceAll("-", "")
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")
}
