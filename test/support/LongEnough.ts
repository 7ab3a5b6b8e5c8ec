import { Effect } from "effect"

const mostMillis = 60_000

/**
 * Makes an attempt that is ended when a time is up, and makes it again with four times as much when that was too little.
 * How far it has come by then says how busy the machine is. `attempt` answers `undefined` when it was too little.
 */
export const longEnough = <A, E, R>(
  millis: number,
  attempt: (millis: number) => Effect.Effect<A | undefined, E, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(attempt(millis), (found) => {
    if (found !== undefined) return Effect.succeed(found)
    return millis > mostMillis ? Effect.die(new Error(`${millis} ms are not enough`)) : longEnough(4 * millis, attempt)
  })
