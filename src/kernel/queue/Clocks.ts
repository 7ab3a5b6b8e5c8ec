import * as Effect from "effect/Effect"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { currentSeconds } from "../Time.ts"
import * as workers from "./Workers.ts"

/** Two readings in epoch seconds. They are one where there is no other clock to ask. */
export interface Clocks {
  /** Nothing is too old before it. */
  readonly earlier: number
  /** Nothing is of a time to come before it. */
  readonly later: number
}

/**
 * This process's clock and that of the database's server, which an embedded database has none of. What is deleted for its age is
 * held against the earlier one, what is deleted for being of a time to come against the later one: a clock that is wrong then
 * deletes nothing that is still of use (docs/decisions/clocks.md, "What is deleted").
 */
export const clocks: Effect.Effect<Clocks, StorageFailed, Database> = Effect.gen(function*() {
  const millis = yield* workers.databaseClock
  const now = yield* currentSeconds
  const theirs = millis === undefined ? now : Math.floor(millis / 1000)
  return { earlier: Math.min(now, theirs), later: Math.max(now, theirs) }
})
