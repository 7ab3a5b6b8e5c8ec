import * as Effect from "effect/Effect"
import { int, nullable } from "../sql/Column.ts"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { first } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"
import { currentSeconds } from "../Time.ts"

/* The clocks of processes and of the database server. */

const clockStatement = statement({
  name: "database_clock",
  params: {},
  row: { millis: nullable(int) },
  // An embedded database uses the clock of this process.
  sql: ({ dialect }) =>
    `SELECT ${dialect === "postgres" ? "(extract(epoch FROM clock_timestamp()) * 1000)::bigint" : "NULL"} AS "millis"`
})

/** Returns the epoch milliseconds of the database server's clock, or `undefined` if there is no server. */
export const databaseClock = Effect.map(first(clockStatement, {}), (row) => row?.millis)

/** Two readings in epoch seconds. They are equal if there is only one clock. */
export interface Clocks {
  /** Rows that are deleted as old must be old by this reading. */
  readonly earlier: number
  /** Rows that are deleted as future rows must be later than this reading. */
  readonly later: number
}

/**
 * Reads the clock of this process and the clock of the database server, if there is a server. Rows are deleted as too
 * old by the earlier reading, and as written in the future by the later reading. So one wrong clock deletes nothing
 * that is still needed (docs/contribute/decisions/clocks.md, "What is deleted").
 */
export const clocks: Effect.Effect<Clocks, StorageFailed, Database> = Effect.gen(function*() {
  const millis = yield* databaseClock
  const now = yield* currentSeconds
  const theirs = millis === undefined ? now : Math.floor(millis / 1000)
  return { earlier: Math.min(now, theirs), later: Math.max(now, theirs) }
})
