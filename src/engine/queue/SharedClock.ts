import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { currentMillis } from "../Time.ts"
import { databaseClock } from "./Clocks.ts"

/**
 * The clock that all processes of one database have in common: the clock of the database server. It decides what has to
 * happen in all processes at once. An embedded database has no clock, so there the clock of this process is used.
 */
export interface SharedClock {
  /** How many milliseconds the clock of the server is ahead of the clock of this process. */
  readonly offsetMillis: () => number
  /** Reads the clock of the server. Until this has succeeded once, the clock of this process is used. */
  readonly measure: Effect.Effect<void, StorageFailed, Database>
}

/** The shared clock. By default it is the clock of this process. */
export const SharedClock: Context.Reference<SharedClock> = Context.Reference<SharedClock>(
  "acme/engine/queue/SharedClock",
  { defaultValue: () => ({ offsetMillis: () => 0, measure: Effect.void }) }
)

/** Makes the clock of one process. */
export const layer: Layer.Layer<never> = Layer.sync(SharedClock, () => {
  let offset = 0
  return {
    offsetMillis: () => offset,
    measure: Effect.gen(function*() {
      const before = yield* currentMillis
      const theirs = yield* databaseClock
      const after = yield* currentMillis
      if (theirs !== undefined) offset = theirs - (before + after) / 2
    })
  }
})

/** Returns the epoch second of the shared clock. */
export const sharedSeconds: Effect.Effect<number> = Effect.gen(function*() {
  const { offsetMillis } = yield* SharedClock
  return Math.floor(((yield* currentMillis) + offsetMillis()) / 1000)
})
