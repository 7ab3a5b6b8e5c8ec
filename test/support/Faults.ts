import { Deferred, Effect } from "effect"
import type { Database } from "../../src/engine/sql/Database.ts"
import type { Connection, Driver } from "../../src/engine/sql/Driver.ts"
import { SqlError } from "../../src/engine/sql/SqlError.ts"
import { sql } from "./Graph.ts"

/*
 * Failures of a database and of processes that use it: writes that fail, and processes that end between two statements.
 */

/** A write that a trigger can refuse. */
export interface Write {
  readonly table: string
  readonly operation: "INSERT" | "UPDATE" | "DELETE"
}

/** Makes this write fail from now on, until {@link mend}. */
export const breakWrites = (
  dialect: Driver["dialect"],
  { operation, table }: Write
): Effect.Effect<void, never, Database> =>
  Effect.asVoid(
    dialect === "sqlite"
      ? sql(`CREATE TRIGGER broken BEFORE ${operation} ON ${table} BEGIN SELECT RAISE(ABORT, 'planted'); END`)
      : Effect.andThen(
        sql("CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'planted'; END $$"),
        sql(`CREATE TRIGGER broken BEFORE ${operation} ON ${table} FOR EACH ROW EXECUTE FUNCTION broken()`)
      )
  )

/** Makes writes work again. */
export const mend = (dialect: Driver["dialect"]): Effect.Effect<void, never, Database> =>
  Effect.asVoid(sql(dialect === "sqlite" ? "DROP TRIGGER IF EXISTS broken" : "DROP FUNCTION IF EXISTS broken CASCADE"))

const dead = new SqlError({ cause: new Error("killed"), message: "killed" })

/**
 * Returns the driver of a process that is killed after this many statements. From then on, none of its statements
 * arrives, and its open transaction is rolled back. `killed` completes at the first statement that the process can no
 * longer send.
 */
export const killedAfter = (driver: Driver, statements: number) =>
  Effect.map(Deferred.make<void>(), (killed): { readonly driver: Driver; readonly killed: Deferred.Deferred<void> } => {
    let left = statements
    const living = <A>(statement: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
      Effect.suspend(() => left-- > 0 ? statement : Effect.andThen(Deferred.succeed(killed, undefined), dead))
    const mortal = (connection: Connection): Connection =>
      Object.assign(Object.create(connection) as Connection, {
        ahead: undefined,
        execute: (...args: Parameters<Connection["execute"]>) => living(connection.execute(...args))
      })
    return {
      killed,
      driver: {
        ...driver,
        exclusive: (use) => driver.exclusive((connection) => use(mortal(connection))),
        single: (statement, params) => living(driver.single(statement, params)),
        transact: (body) => driver.transact((connection) => body(mortal(connection)))
      }
    }
  })

/**
 * Returns a driver whose first look-up with this text finds nothing, as if the winner of a race were about to commit.
 * Also returns a function that reports whether this has happened.
 */
export const blindOnce = (driver: Driver, text: string) => {
  let blind = true
  const racing: Driver = {
    ...driver,
    single: (statement, params) => {
      const hidden = blind && statement.reads && statement.text.includes(text)
      if (hidden) blind = false
      return hidden ? Effect.succeed([]) : driver.single(statement, params)
    }
  }
  return { driver: racing, wasBlind: () => !blind }
}
