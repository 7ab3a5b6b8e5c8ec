import * as Effect from "effect/Effect"
import { currentMillis } from "../Time.ts"

/** Logs one record per second and drops all others, because strangers may cause very many records. */
export const seldom = (log: (record: Effect.Effect<void>) => void): (record: Effect.Effect<void>) => void => {
  let loggedAt = Number.NEGATIVE_INFINITY
  return (record) =>
    log(Effect.flatMap(currentMillis, (now) => {
      if (Math.abs(now - loggedAt) < 1000) return Effect.void
      loggedAt = now
      return record
    }))
}
