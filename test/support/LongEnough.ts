import { Effect } from "effect"

const mostMillis = 60_000

/**
 * Makes an attempt that ends when its time is up. If that was too little, the attempt is repeated with four times as
 * much time, because its progress shows how busy the machine is. `attempt` returns `undefined` if the time was too
 * little.
 */
export const longEnough = <A, E, R>(
  millis: number,
  attempt: (millis: number) => Effect.Effect<A | undefined, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(attempt(millis), (found) => {
    if (found !== undefined) return Effect.succeed(found)
    return millis > mostMillis ? Effect.die(new Error(`${millis} ms are not enough`)) : longEnough(4 * millis, attempt)
  })
