import { Clock, Context, Deferred, Effect, Layer, Schedule } from "effect"
import { makeTurns } from "../net/Turns.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { Database } from "../sql/Database.ts"
import type { JobId } from "./Job.ts"
import type { JobRecord } from "./JobRecords.ts"
import * as jobRecords from "./JobRecords.ts"
import * as jobs from "./Jobs.ts"

const settled = new Set(["done", "failed", "cancelled"])
const lookEvery = "250 millis"

/** Completes when a job may have ended; never, if there are no notifications. */
type Told = (id: JobId) => Effect.Effect<void>

/**
 * Waits until a job has ended or the time is up, and answers its row; `undefined` if the row is gone. While a job signs
 * a CRL, a new reason to sign it may come. The job may then leave that to a successor, which is waited for too.
 */
export const settledJob = (
  first: JobId,
  limitMillis: number,
  told: Told = () => Effect.never
): Effect.Effect<JobRecord | undefined, StorageFailed, Database> =>
  Effect.gen(function*() {
    const until = (yield* Clock.currentTimeMillis) + limitMillis
    let id = first
    for (;;) {
      const job = yield* jobRecords.find(id)
      const successor = job?.status === "done" && job.kind === "local_ca_crl_regenerate"
        ? yield* jobs.findLive(job.kind, job.dedupKey)
        : undefined
      if (successor !== undefined) id = successor.id
      else if (job === undefined || settled.has(job.status) || (yield* Clock.currentTimeMillis) >= until) return job
      else yield* Effect.raceFirst(Effect.sleep(lookEvery), told(id))
    }
  })

// Each waiting request holds a request slot. The other slots are for requests that are answered at once.
const shareOfSlots = 4
const answerMillis = 1000
const listenRetries = Schedule.union(Schedule.exponential("1 second"), Schedule.spaced("30 seconds"))

/**
 * Listens for the ends of jobs of all processes while the scope lives; `undefined` if the database sends no
 * notifications, and then waits poll.
 */
const hearEnds = Effect.gen(function*() {
  const waiting = new Map<string, Set<Deferred.Deferred<void>>>()
  const { listen } = yield* Database
  if (listen === undefined) return undefined
  const heard = (id: string) => {
    for (const one of waiting.get(id) ?? []) Deferred.unsafeDone(one, Effect.void)
  }
  const hearing = listen(jobs.doneChannel, { heard, listening: Effect.void })
  yield* Effect.forkScoped(Effect.ignore(Effect.retry(hearing, listenRetries)))
  const told: Told = (id) =>
    Effect.acquireUseRelease(
      Effect.map(Deferred.make<void>(), (done) => {
        const all = waiting.get(id) ?? new Set()
        waiting.set(id, all.add(done))
        return done
      }),
      Deferred.await,
      (done) =>
        Effect.sync(() => {
          const all = waiting.get(id)
          all?.delete(done)
          if (all?.size === 0) waiting.delete(id)
        })
    )
  return told
})

/**
 * Lets a bounded number of requests at a time wait for a job (docs/decisions/wake-up.md, "Requests that wait for a
 * job").
 */
export class Waits extends Context.Tag("acme/kernel/queue/Waits")<Waits, {
  /**
   * Like {@link settledJob}, until shortly before the request's own deadline. Does not wait if too many requests wait
   * already.
   */
  readonly settled: (id: JobId) => Effect.Effect<JobRecord | undefined, StorageFailed>
}>() {
  /** `server.*`. */
  static readonly layer = (server: {
    readonly request_timeout_ms: number
    readonly max_concurrent_requests: number
  }): Layer.Layer<Waits, never, Database> =>
    Layer.scoped(
      this,
      Effect.gen(function*() {
        const database = yield* Database
        const told = yield* hearEnds
        const turns = makeTurns(Math.max(1, Math.floor(server.max_concurrent_requests / shareOfSlots)))
        const longest = Math.max(0, server.request_timeout_ms - answerMillis)
        return {
          settled: (id) =>
            turns.takeIfFree(settledJob(id, longest, told), settledJob(id, 0)).pipe(
              Effect.provideService(Database, database)
            )
        }
      })
    )
}
