import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Whether the fiber's statements are signs of life of this process. */
export const isVital: Context.Reference<boolean> = Context.Reference<boolean>("acme/engine/sql/Vital/isVital", {
  defaultValue: () => false
})

/**
 * Runs statements without which other processes would believe that this one is gone, and would take its jobs. On
 * PostgreSQL a connection is left for them, because all others may wait for a table that somebody has locked.
 */
export const vital = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(self, isVital, true)
