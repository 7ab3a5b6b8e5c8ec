import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Semaphore from "effect/Semaphore"
import { eachSynced } from "./sql/Synced.ts"
import { currentMillis } from "./Time.ts"

/**
 * Reads a value at most once every `millis` milliseconds. Concurrent callers share one reading. A failure is not kept.
 */
export const makeSharedReading = <A, E, R>(
  millis: number,
  read: Effect.Effect<A, E, R>
): Effect.Effect<Effect.Effect<A, E, R>> =>
  Effect.map(Ref.make<{ readonly at: number; readonly value: A } | undefined>(undefined), (kept) => {
    const turns = Semaphore.makeUnsafe(1)
    return turns.withPermits(1)(Effect.gen(function*() {
      const now = yield* currentMillis
      const last = yield* Ref.get(kept)
      // The value also counts as old if the clock was set back.
      if (last !== undefined && now - last.at < millis && now >= last.at) return last.value
      const value = yield* eachSynced(read)
      yield* Ref.set(kept, { at: now, value })
      return value
    }))
  })
