import { Effect } from "effect"

const mostMillis = 60_000

/**
 * Makes an attempt with a time limit. `attempt` returns `undefined` if the time was too short, and is then repeated
 * with four times as much time. The necessary time depends on how busy the machine is.
 */
export const longEnough = <A, E, R>(
  millis: number,
  attempt: (millis: number) => Effect.Effect<A | undefined, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(attempt(millis), (found) => {
    if (found !== undefined) return Effect.succeed(found)
    return millis > mostMillis ? Effect.die(new Error(`${millis} ms are not enough`)) : longEnough(4 * millis, attempt)
  })
