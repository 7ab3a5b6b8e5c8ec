import { Clock, Effect, Layer, Schedule } from "effect"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { emit } from "../telemetry/EventLog.ts"
import { currentSeconds } from "../Time.ts"
import * as workers from "./Workers.ts"

/** What operators are told of a process. Leases alone govern the queue. */
export interface PresenceOptions {
  /** `<host>:<pid>:<uuid>:<place>.<begun>` */
  readonly owner: string
  /** Comma-joined. */
  readonly roles: string
  readonly version: string
}

const refreshMillis = 10_000
const forgottenAfterSeconds = 600

/** Clocks that differ by less are as one: seconds are what rows are stamped with, and an answer takes its time. */
const noticedMillis = 2000

/** How far clocks are ahead of this process's, in milliseconds: the database server's, and that of who is seen the latest. */
const measure = Effect.fnUntraced(function*(owner: string) {
  const before = yield* Clock.currentTimeMillis
  const theirs = yield* workers.databaseClock
  const after = yield* Clock.currentTimeMillis
  const offsets: Array<readonly [against: string, millis: number]> = []
  // Somewhere between question and answer; what that alone may account for is nothing.
  if (theirs !== undefined && theirs < before) offsets.push(["database", theirs - before])
  if (theirs !== undefined && theirs > after) offsets.push(["database", theirs - after])
  const latest = yield* workers.ahead(owner, Math.floor(after / 1000))
  if (latest !== undefined) offsets.push([latest.owner, latest.lastSeenAt * 1000 - after])
  return offsets.filter(([, millis]) => Math.abs(millis) >= noticedMillis)
})

/**
 * A row in `workers` while the scope lives, refreshed every ten seconds; rows of the long dead are removed. Clocks that differ
 * from this process's are told of, again when they differ by another ten seconds.
 */
export const layer = (options: PresenceOptions): Layer.Layer<never, StorageFailed, Database> =>
  Layer.scopedDiscard(
    Effect.gen(function*() {
      const seconds = currentSeconds
      const startedAt = yield* seconds
      yield* Effect.acquireRelease(
        workers.present({ ...options, startedAt, now: startedAt }),
        () => Effect.ignore(workers.remove(options.owner)) // the row is forgotten after ten minutes anyway
      )
      yield* emit("worker_registered", options)
      let told = new Map<string, number>()
      const compare = Effect.gen(function*() {
        const now = new Map<string, number>()
        for (const [against, offset_ms] of yield* measure(options.owner)) {
          const before = told.get(against)
          const isKnown = before !== undefined && Math.abs(offset_ms - before) < refreshMillis
          now.set(against, isKnown ? before : offset_ms)
          if (!isKnown) yield* emit("server_clock_skewed", { against, offset_ms })
        }
        told = now
      })
      const refresh = Effect.gen(function*() {
        const now = yield* seconds
        yield* workers.present({ ...options, startedAt, now })
        const rows_removed = yield* workers.sweep(now - forgottenAfterSeconds, now + forgottenAfterSeconds)
        if (rows_removed > 0) yield* emit("worker_presence_swept", { rows_removed })
        yield* compare
      }).pipe(Effect.catchAll((error) => emit("worker_presence_failed", { error: error.message })))
      yield* Effect.ignore(compare)
      yield* Effect.forkScoped(Effect.repeat(Effect.delay(refresh, refreshMillis), Schedule.forever))
    })
  )
