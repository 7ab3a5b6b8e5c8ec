import * as Effect from "effect/Effect"

/**
 * Runs `act` when an effect has ended, whatever its exit. May only be used in an uninterruptible region, or for a
 * restored effect within such a region. There it is as safe as `Effect.ensuring`, and needs two operations instead of
 * nine.
 */
export const finallyDo = <A, E, R>(self: Effect.Effect<A, E, R>, act: () => void): Effect.Effect<A, E, R> =>
  Effect.matchCauseEffect(self, {
    onFailure: (cause) => {
      act()
      return Effect.failCause(cause)
    },
    onSuccess: (value) => {
      act()
      return Effect.succeed(value)
    }
  })
