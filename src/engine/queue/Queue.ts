import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Queue"
import { Entropy } from "../../crypto/Entropy.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { afterCommit, Database } from "../sql/Database.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentSeconds } from "../Time.ts"
import * as Ends from "./Ends.ts"
import type { JobId } from "./Job.ts"
import { JobId as makeJobId } from "./Job.ts"
import * as jobs from "./JobRows.ts"
import type { KnownKinds } from "./Kind.ts"
import { leaseSeconds } from "./Leases.ts"
import * as ReservedSlots from "./ReservedSlots.ts"

/** A job to enqueue: `runAt` (now by default) and `deadline` in epoch seconds. */
export interface Enqueue<K extends string = string, P = string> {
  readonly kind: K
  /** Unique with the kind while the job is live. A second enqueue then answers the live job's id. */
  readonly dedupKey: string
  readonly payload: P
  /** For whom it counts (`shareOf`), if it is somebody's. */
  readonly share?: string
  readonly runAt?: number
  readonly deadline?: number
}

/** Durable work that follows an answer (docs/jobs.md). */
export class Queue extends Context.Service<Queue, {
  /**
   * Writes the job, whose payload is encoded, in the caller's transaction. After the commit it begins, if this process's runner has a slot for it
   * (`reservedSlots`), or else the runner is woken.
   */
  readonly enqueue: (job: Enqueue) => Effect.Effect<JobId, StorageFailed>
  /**
   * Marks jobs that this process enqueues: its runner is woken directly and ignores their notifications from the
   * database.
   */
  readonly origin: string
  /** Tells the runner that there may be work. Signals merge until the runner takes them. */
  readonly wake: Effect.Effect<void>
  /** Waits for the next signal. */
  readonly awakened: Effect.Effect<void>
  /** What there is to know of the kinds of its jobs. */
  readonly kinds: KnownKinds
  /** The ends of jobs that this process hears of. */
  readonly ends: Ends.Ends
  /** Where the runner of this process says that jobs may begin at the commit that enqueues them. */
  readonly reservedSlots: Pick<ReservedSlots.ReservedSlots, "offer">
}>()("acme/engine/queue/Queue") {
  /** `maxAttempts` is the value of `jobs.max_attempts` when a row is made. The row keeps that value. */
  static readonly layer = (options: {
    readonly kinds: KnownKinds
    readonly maxAttempts: () => number
  }): Layer.Layer<Queue, never, Database | Entropy> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const database = yield* Database
        const entropy = yield* Entropy
        const origin = yield* entropy.uuid
        const signals = yield* Mailbox.sliding<void>(1)
        const wake = Effect.asVoid(Mailbox.offer(signals, undefined))
        const reservedSlots = ReservedSlots.make()
        const enqueue: Queue["Service"]["enqueue"] = Effect.fnUntraced(
          function*(job: Enqueue): Effect.fn.Return<
            JobId,
            StorageFailed,
            Database
          > {
            const now = yield* currentSeconds
            const { dedupKey, kind, share = "" } = job
            const reserved = job.runAt === undefined ? yield* reservedSlots.take(kind, share) : undefined
            const row = {
              id: makeJobId(yield* entropy.uuid),
              kind,
              dedupKey,
              payload: job.payload,
              maxAttempts: options.maxAttempts(),
              deadline: job.deadline,
              share
            }
            const claim = reserved && { owner: reserved.owner, until: now + leaseSeconds }
            if ((yield* jobs.insert({ ...row, runAt: job.runAt ?? now, now, origin, claim })) !== undefined) {
              yield* afterCommit(Effect.andThen(
                emit("job_enqueued", { kind, job_id: row.id }),
                reserved === undefined ? wake : reserved.begin({ ...row, attempts: 1, createdAt: now, spentSeconds: 0 })
              ))
              return row.id
            }
            if (reserved !== undefined) yield* reserved.giveBack
            const live = yield* jobs.join(job.kind, job.dedupKey)
            // The live row settled between the two statements, so a new row can be inserted.
            return live === undefined ? yield* enqueue(job) : live.id
          },
          Effect.provideService(Database, database)
        )
        return Queue.of({
          kinds: options.kinds,
          origin,
          enqueue,
          wake,
          awakened: Mailbox.take(signals),
          ends: Ends.make(),
          reservedSlots
        })
      })
    )
}
