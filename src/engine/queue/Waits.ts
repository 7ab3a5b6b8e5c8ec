import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Loops } from "../Loops.ts"
import { makeFairSemaphore } from "../net/FairSemaphore.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { Database } from "../sql/Database.ts"
import { supervised } from "../Supervised.ts"
import { currentMillis, currentSeconds } from "../Time.ts"
import type { Ends, Moment, Running, Subject } from "./Ends.ts"
import * as jobs from "./Job.ts"
import type { JobId } from "./Job.ts"
import * as jobRecords from "./JobRecords.ts"
import type { JobRecord } from "./JobRecords.ts"

import { Queue } from "./Queue.ts"

const settled = new Set(["done", "failed", "cancelled"])

const lookEvery = "250 millis"
// Ends are polled more often. This interval is for a job that ended before the wait for it began.
const lookEveryIfTold = "1 second"

/**
 * Waits until a job has ended or the time is up, and returns its row, or `undefined` if the row is gone. If a new
 * reason to run the job comes up while the job runs, a successor may have to run for that reason. This waits for the
 * successor too.
 */
export const settledJob = (
  first: JobId,
  limitMillis: number,
  ends?: Ends
): Effect.Effect<JobRecord | undefined, StorageFailed, Database> =>
  Effect.gen(function*() {
    const until = (yield* currentMillis) + limitMillis
    let id = first
    for (;;) {
      const moment = ends?.moment() ?? 0
      const job = yield* jobRecords.find(id)
      const successor = job?.status === "done" ? yield* jobs.findLive(job.kind, job.dedupKey) : undefined
      if (successor !== undefined) id = successor.id
      else if (job === undefined || settled.has(job.status) || (yield* currentMillis) >= until) return job
      // A process that is stopping must still answer its requests with the end of the job, so it polls.
      else if (ends === undefined || ends.isStopped()) yield* Effect.sleep(lookEvery)
      else yield* Effect.raceFirst(Effect.sleep(lookEveryIfTold), ends.after(moment, job))
    }
  })

// Each request that waits for a job takes a request slot. The other slots are for requests that are answered at once.
const shareOfSlots = 4
const answerMillis = 1000

// A held poll takes no slot; it only keeps its connection open.
const heldForSlot = 4
const longestHoldMillis = 1000

// This limits the wait if the next attempt is far away, because an operator may run the job earlier.
const longestPauseSeconds = 30

const pauseOf = Effect.fnUntraced(function*({ dedupKey, kind }: Subject, longest: number) {
  const live = yield* jobs.findLive(kind, dedupKey)
  if (live === undefined) return 1 // the job has just ended
  const now = yield* currentSeconds
  return live.status === "ready" && live.runAt > now
    ? Math.min(live.runAt - now, longestPauseSeconds)
    : Math.min(Math.max(1, now - live.createdAt), longest)
})

/** How long a request may be held, in milliseconds. */
export interface Patience {
  readonly limitMillis: number
  /** How much of the request's time is used up, or is needed after the hold. */
  readonly spentMillis: number
}

/** Lets a limited number of requests wait for jobs at a time (docs/contribute/decisions/wake-up.md). */
export class Waits extends Context.Service<Waits, {
  /**
   * Like {@link settledJob}, but waits until shortly before the request's own deadline. It does not wait if too many
   * requests already wait.
   */
  readonly settled: (id: JobId) => Effect.Effect<JobRecord | undefined, StorageFailed>
  /** Returns the current moment, for `held`. Call this before you read the state for whose change you wait. */
  readonly moment: () => Moment
  /**
   * Holds a request until the subject's job has ended, the process stops or the time is up. A hold lasts at most a
   * second or, with `patience`, at most the limit in `patience`. It ends early enough for the request to be answered.
   * Returns `false` if the request was not held, because too many requests are already held.
   */
  readonly held: (since: Moment, subject: Subject, patience?: Patience) => Effect.Effect<boolean>
  /**
   * Returns whether this process runs a job with this subject and share. If it does, `held` learns of the job's end
   * without polling.
   */
  readonly isRunning: (job: Running) => boolean
  /** Returns whether `held` would hold a request of this peer now. */
  readonly mayHold: Effect.Effect<boolean>
  /**
   * Returns in how many seconds to ask again if a hold ended before the job did. If the job waits for its next attempt,
   * this is the time until the attempt begins, at most 30 seconds. Otherwise this is the age of the job, from one
   * second to `longest`.
   */
  readonly pause: (subject: Subject, longest: number) => Effect.Effect<number, StorageFailed>
}>()("acme/engine/queue/Waits") {
  /** Makes the service from `server.*` and the longest time for which a poll is held. */
  static readonly layer = (server: {
    readonly request_timeout_ms: number
    readonly max_concurrent_requests: number
    readonly hold_ms?: number
  }): Layer.Layer<Waits, never, Database | Loops | Queue> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const database = yield* Database
        const { ends } = yield* Queue
        const look = Effect.provideService(Effect.ignore(ends.look), Database, database)
        yield* supervised("job_ends_heard", ends.awake.repeat(look))
        const turns = makeFairSemaphore(Math.max(1, Math.floor(server.max_concurrent_requests / shareOfSlots)))
        const holdMillis = Math.min(server.hold_ms ?? longestHoldMillis, server.request_timeout_ms / 2)
        const holds = makeFairSemaphore(holdMillis > 0 ? heldForSlot * server.max_concurrent_requests : 0)
        const longest = Math.max(0, server.request_timeout_ms - answerMillis)
        return {
          settled: (id) =>
            turns.takeIfFree(settledJob(id, longest, ends), settledJob(id, 0)).pipe(
              Effect.provideService(Database, database)
            ),
          moment: ends.moment,
          held: (since, subject, patience) => {
            const millis = patience === undefined
              ? holdMillis
              : Math.max(0, Math.min(patience.limitMillis, longest - patience.spentMillis))
            return holds.takeIfFree(
              Effect.as(Effect.raceFirst(Effect.sleep(millis), ends.after(since, subject)), true),
              Effect.succeed(false)
            )
          },
          isRunning: ends.isRunning,
          mayHold: holds.isFree,
          pause: (subject, longest) => Effect.provideService(pauseOf(subject, longest), Database, database)
        }
      })
    )
}
