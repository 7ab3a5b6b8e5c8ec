import { Clock, Effect, Layer, Schedule } from "effect"
import type { Database, StorageFailed } from "../db/Database.ts"
import * as workers from "../db/workers.ts"
import { emit } from "../log/EventLog.ts"

/** What operators are told of a process. Leases alone govern the queue. */
export interface PresenceOptions {
  /** `<host>:<pid>:<uuid>` */
  readonly owner: string
  /** Comma-joined. */
  readonly roles: string
  readonly version: string
}

const refreshMillis = 10_000
const forgottenAfterSeconds = 600

/** A row in `workers` while the scope lives, refreshed every ten seconds; rows of the long dead are removed. */
export const layer = (options: PresenceOptions): Layer.Layer<never, StorageFailed, Database> =>
  Layer.scopedDiscard(
    Effect.gen(function*() {
      const seconds = Effect.map(Clock.currentTimeMillis, (millis) => Math.floor(millis / 1000))
      const startedAt = yield* seconds
      yield* Effect.acquireRelease(
        workers.present({ ...options, startedAt, now: startedAt }),
        () => Effect.ignore(workers.remove(options.owner)) // the row is forgotten after ten minutes anyway
      )
      yield* emit("worker_registered", options)
      const refresh = Effect.gen(function*() {
        const now = yield* seconds
        yield* workers.present({ ...options, startedAt, now })
        const rows_removed = yield* workers.sweep(now - forgottenAfterSeconds)
        if (rows_removed > 0) yield* emit("worker_presence_swept", { rows_removed })
      }).pipe(Effect.catchAll((error) => emit("worker_presence_failed", { error: error.message })))
      yield* Effect.forkScoped(Effect.repeat(Effect.delay(refresh, refreshMillis), Schedule.forever))
    })
  )
