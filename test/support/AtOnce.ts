import { Effect, Result } from "effect"

/** Runs an effect `times` times at once. Returns the tag of each failure, and `undefined` for a success. */
export const atOnce = <A, E extends { readonly _tag: string }, R>(times: number, self: Effect.Effect<A, E, R>) =>
  Effect.map(
    Effect.all(Array.from({ length: times }, () => Effect.result(self)), { concurrency: "unbounded" }),
    (results) => results.map((one) => Result.isFailure(one) ? one.failure._tag : undefined)
  )

/** Returns how often each member occurs in a list. */
export const tally = (members: ReadonlyArray<string | undefined>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const member of members) counts[member ?? "done"] = (counts[member ?? "done"] ?? 0) + 1
  return counts
}
