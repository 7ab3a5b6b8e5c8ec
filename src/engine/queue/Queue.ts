import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Mailbox from "effect/Queue"
import { Entropy } from "../../crypto/Entropy.ts"
import { untilBack } from "../Retries.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { afterCommit, Database } from "../sql/Database.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentSeconds } from "../Time.ts"
import { makeAnnouncer } from "./Announcer.ts"
import type { claiming } from "./Claims.ts"
import type { Ends } from "./Ends.ts"
import { makeEnds } from "./Ends.ts"
import * as jobs from "./Job.ts"
import type { JobId } from "./Job.ts"
import { leaseSeconds } from "./Leases.ts"
import * as Slots from "./Slots.ts"

/* Enqueues the jobs of this process, and begins them. */

/** A job to enqueue: `runAt` (now by default) and `deadline` in epoch seconds. */
export interface Enqueue<K extends string = string, P = string> {
  readonly kind: K
  /** Unique among the live jobs of the kind. If a live job has the same key, enqueueing returns the id of that job. */
  readonly dedupKey: string
  readonly payload: P
  /** The share in which the job counts (`shareOf`), if it has a share. */
  readonly share?: string
  readonly runAt?: number
  readonly deadline?: number
}

/** The facts about kinds that the queue needs: their rooms, and the statements whose texts name kinds. */
export interface KnownKinds extends ReturnType<typeof claiming> {
  /** The name of the group of a share in records of the log. */
  readonly groupName: string
  /**
   * Returns how many jobs of a kind may run in this process at once, if `jobs.max_concurrent` is `most`. Returns
   * `undefined` if there is no limit.
   */
  readonly roomOf: (kind: string, most: number) => Slots.Room | undefined
}

/** Durable work that follows an answer (docs/operate/jobs.md). */
export class Queue extends Context.Service<Queue, {
  /**
   * Writes the job, with its encoded payload, in the caller's transaction. After the commit the job begins if this
   * process's runner has a slot for it (`reservedSlots`). Otherwise the runner is woken.
   */
  readonly enqueue: (job: Enqueue) => Effect.Effect<JobId, StorageFailed>
  /**
   * The mark of the jobs that this process enqueues. The runner of this process is woken directly, and ignores the
   * database's notifications of jobs with this mark.
   */
  readonly origin: string
  /** Signals to the runner that there may be work. Signals merge until the runner takes them. */
  readonly wake: Effect.Effect<void>
  /** Waits for the next signal. */
  readonly awakened: Effect.Effect<void>
  /** The facts about the kinds of its jobs. */
  readonly kinds: KnownKinds
  /** The ends of jobs that this process knows of. */
  readonly ends: Ends
  /** The runner of this process offers its slots here, so that jobs can begin at the commit that enqueues them. */
  readonly reservedSlots: Pick<Slots.ReservedSlots, "offer">
}>()("acme/engine/queue/Queue") {
  /**
   * Makes the service. It calls `config` for each row, because a reload changes the configuration. The row keeps the
   * value of `jobs.max_attempts`.
   */
  static readonly layer = (options: {
    readonly kinds: KnownKinds
    readonly config: () => { readonly jobs: { readonly max_attempts: number } }
  }): Layer.Layer<Queue, never, Database | Entropy> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const database = yield* Database
        const entropy = yield* Entropy
        const origin = yield* entropy.uuid
        const signals = yield* Mailbox.sliding<void>(1)
        const wake = Effect.asVoid(Mailbox.offer(signals, undefined))
        const reservedSlots = Slots.makeReserved()
        const announce = yield* makeAnnouncer
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
              id: jobs.JobId(yield* entropy.uuid),
              kind,
              dedupKey,
              payload: job.payload,
              maxAttempts: options.config().jobs.max_attempts,
              deadline: job.deadline,
              share
            }
            const claim = reserved && { owner: reserved.owner, until: now + leaseSeconds }
            if ((yield* jobs.insert({ ...row, runAt: job.runAt ?? now, now, claim })) !== undefined) {
              yield* afterCommit(Effect.andThen(
                emit("job_enqueued", { kind, job_id: row.id }),
                reserved === undefined
                  ? Effect.andThen(wake, announce(`${kind} ${origin}`))
                  : reserved.begin({ ...row, attempts: 1, createdAt: now, spentSeconds: 0 })
              ))
              return row.id
            }
            if (reserved !== undefined) yield* reserved.giveBack
            const live = yield* jobs.join(job.kind, job.dedupKey)
            // The live row was settled between the two statements, so a new row can be inserted.
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
          ends: makeEnds(),
          reservedSlots
        })
      })
    )
}

/* Handles jobs that other processes enqueue. */

const mergeMillis = 20

/** Makes the part of the runner that listens for jobs of other processes. */
export const makeHearing = (
  { after, isKnown }: {
    /** Returns whether this runner runs jobs of a kind. */
    readonly isKnown: (kind: string | undefined) => boolean
    /** Runs an effect later. */
    readonly after: (millis: number, effect: Effect.Effect<void>) => void
  },
  queue: Queue["Service"]
) => {
  let [mergedWake, isTold, isListening] = [false, false, false]
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
    /** Returns whether this process would hear of an announcement now. */
    isHearing: () => isListening,
    /** Returns whether other processes have announced work since the last call. */
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
      // Notifications may have been lost in the meantime, so the runner checks for work.
      const listening = Effect.suspend(() => {
        isListening = true
        if (!isLost) return Effect.void
        isLost = false
        return Effect.andThen(emit("db_listen_restored", {}), queue.wake)
      })
      const lost = (error: Parameters<typeof describe>[0]) =>
        Effect.suspend(() => {
          isListening = false
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
