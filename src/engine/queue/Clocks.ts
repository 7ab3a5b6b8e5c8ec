import * as Effect from "effect/Effect"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { currentSeconds } from "../Time.ts"
import * as workers from "./Workers.ts"

/** Two readings in epoch seconds. They are equal if there is only one clock. */
export interface Clocks {
  /** What is deleted because it is old must be old by this reading. */
  readonly earlier: number
  /** What is deleted because it lies in the future must lie after this reading. */
  readonly later: number
}

/**
 * Reads the clock of this process and that of the database server, if there is a server. Rows are deleted as too old by
 * the earlier reading, and as written in the future by the later one. So one wrong clock deletes nothing that is still
 * of use (docs/decisions/clocks.md, "What is deleted").
 */
export const clocks: Effect.Effect<Clocks, StorageFailed, Database> = Effect.gen(function*() {
  const millis = yield* workers.databaseClock
  const now = yield* currentSeconds
  const theirs = millis === undefined ? now : Math.floor(millis / 1000)
  return { earlier: Math.min(now, theirs), later: Math.max(now, theirs) }
})
