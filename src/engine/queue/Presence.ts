import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type { Loops } from "../Loops.ts"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { supervised } from "../Supervised.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, currentSeconds } from "../Time.ts"
import { clocks } from "./Clocks.ts"
import * as workers from "./Workers.ts"

/** What operators see of a process. The queue itself depends on leases only. */
export interface PresenceOptions {
  /** `<host>:<pid>:<uuid>:<place>.<begun>` */
  readonly owner: string
  /** Comma-joined. */
  readonly roles: string
  readonly version: string
}

const refreshMillis = 10_000
const forgottenAfterSeconds = 600

/** Smaller differences between clocks are ignored: rows have times in whole seconds, and an answer takes time. */
const noticedMillis = 2000

/**
 * How far other clocks are ahead of this process's, in milliseconds: that of the database server, and that of the
 * process that was seen latest.
 */
const measure = Effect.fnUntraced(function*(owner: string) {
  const before = yield* currentMillis
  const theirs = yield* workers.databaseClock
  const after = yield* currentMillis
  const offsets: Array<readonly [against: string, millis: number]> = []
  // The database read its clock between question and answer. A difference within that interval counts as none.
  if (theirs !== undefined && theirs < before) offsets.push(["database", theirs - before])
  if (theirs !== undefined && theirs > after) offsets.push(["database", theirs - after])
  const latest = yield* workers.ahead(owner, Math.floor(after / 1000))
  if (latest !== undefined) offsets.push([latest.owner, latest.lastSeenAt * 1000 - after])
  return offsets.filter(([, millis]) => Math.abs(millis) >= noticedMillis)
})

/**
 * Keeps a row in `workers` while the scope lives, refreshed every ten seconds, and removes rows of processes that are
 * long gone. Reports clocks that differ from this process's, and again when the difference has changed by ten seconds.
 */
export const layer = (options: PresenceOptions): Layer.Layer<never, StorageFailed, Database | Loops> =>
  Layer.effectDiscard(
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
        const { earlier, later } = yield* clocks
        const rows_removed = yield* workers.sweep(earlier - forgottenAfterSeconds, later + forgottenAfterSeconds)
        if (rows_removed > 0) yield* emit("worker_presence_swept", { rows_removed })
        yield* compare
      }).pipe(Effect.catch((error) => emit("worker_presence_failed", { error: error.message })))
      yield* Effect.ignore(compare)
      yield* supervised("worker_presence", Effect.repeat(Effect.delay(refresh, refreshMillis), Schedule.forever))
    })
  )
