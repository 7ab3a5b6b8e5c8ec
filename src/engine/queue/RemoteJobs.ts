import * as Effect from "effect/Effect"
import { untilBack } from "../Retries.ts"
import { Database } from "../sql/Database.ts"
import { emit } from "../telemetry/EngineLog.ts"
import * as jobs from "./JobRows.ts"
import type { Queue } from "./Queue.ts"

const mergeMillis = 20

/** Hears of jobs that other processes enqueue, for the runner of this process. */
export const make = (
  { after, isKnown }: {
    /** Whether this runner runs jobs of a kind. */
    readonly isKnown: (kind: string | undefined) => boolean
    /** Runs an effect later. */
    readonly after: (millis: number, effect: Effect.Effect<void>) => void
  },
  queue: Queue["Service"]
) => {
  let [mergedWake, isTold] = [false, false]
  const heard = (payload: string) => {
    const [kind, origin] = payload.split(" ")
    if (mergedWake || origin === queue.origin || !isKnown(kind)) return
    mergedWake = true
    const told = Effect.sync(() => {
      mergedWake = false
      isTold = true
    })
    after(mergeMillis, Effect.andThen(told, queue.wake))
  }
  return {
    /** Whether others have announced work since the last call. */
    haveTold: (): boolean => {
      const told = isTold
      isTold = false
      return told
    },
    /**
     * Wakes the runner for work that other processes enqueue, if the database sends notifications. Without them, the
     * poll finds such work.
     */
    hear: Effect.map(Database, ({ describe, listen }) => {
      if (listen === undefined) return Effect.never
      let isLost = false
      // Notifications may have been lost meanwhile, so the runner looks for work.
      const listening = Effect.suspend(() => {
        if (!isLost) return Effect.void
        isLost = false
        return Effect.andThen(emit("db_listen_restored", {}), queue.wake)
      })
      const lost = (error: Parameters<typeof describe>[0]) =>
        Effect.suspend(() => {
          if (isLost) return Effect.void
          isLost = true
          return emit("db_listen_lost", { error: describe(error).detail })
        })
      return Effect.orDie(
        Effect.retry(Effect.tapError(listen(jobs.wakeChannel, { heard, listening }), lost), untilBack)
      )
    })
  }
}
