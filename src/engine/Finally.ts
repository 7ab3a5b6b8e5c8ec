import * as Effect from "effect/Effect"

/**
 * Does something when an effect has ended, however it has. Only for what runs uninterruptibly, or is restored within such a
 * region: there it is as safe as `Effect.ensuring`, and takes two operations in place of nine.
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
