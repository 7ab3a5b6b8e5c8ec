import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Mailbox from "effect/Queue"
import * as Record from "effect/Record"
import * as Schema from "effect/Schema"
import { Entropy } from "../../crypto/Entropy.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { afterCommit, Database } from "../sql/Database.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentSeconds } from "../Time.ts"
import * as Ends from "./Ends.ts"
import type { JobId } from "./Job.ts"
import { JobId as makeJobId } from "./Job.ts"
import type { JobKind, PayloadOf } from "./Job.ts"
import { payloads } from "./Job.ts"
import * as jobs from "./JobRows.ts"
import { leaseSeconds } from "./Leases.ts"
import * as ReservedSlots from "./ReservedSlots.ts"

/** A job to enqueue: `runAt` (now by default) and `deadline` in epoch seconds. */
export interface Enqueue<K extends JobKind> {
  readonly kind: K
  /** Unique with the kind while the job is live. A second enqueue then answers the live job's id. */
  readonly dedupKey: string
  readonly payload: PayloadOf<K>
  /** The share of its account (`shareOf`), if it belongs to one. */
  readonly share?: string
  readonly runAt?: number
  readonly deadline?: number
}

/** Durable work that follows an answer (docs/jobs.md). */
export class Queue extends Context.Service<Queue, {
  /**
   * Writes the job in the caller's transaction. After the commit it begins, if this process's runner has a slot for it
   * (`reservedSlots`), or else the runner is woken.
   */
  readonly enqueue: <K extends JobKind>(job: Enqueue<K>) => Effect.Effect<JobId, StorageFailed>
  /**
   * Marks jobs that this process enqueues: its runner is woken directly and ignores their notifications from the
   * database.
   */
  readonly origin: string
  /** Tells the runner that there may be work. Signals merge until the runner takes them. */
  readonly wake: Effect.Effect<void>
  /** Waits for the next signal. */
  readonly awakened: Effect.Effect<void>
  /** The ends of jobs that this process hears of. */
  readonly ends: Ends.Ends
  /** Where the runner of this process says that jobs may begin at the commit that enqueues them. */
  readonly reservedSlots: Pick<ReservedSlots.ReservedSlots, "offer">
}>()("acme/engine/queue/Queue") {
  /** `maxAttempts` is the value of `jobs.max_attempts` when a row is made. The row keeps that value. */
  static readonly layer = (options: {
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
          function*(job: Enqueue<JobKind>): Effect.fn.Return<
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
              payload: codecs[kind].encode(job.payload),
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
        return Queue.of({ origin, enqueue, wake, awakened: Mailbox.take(signals), ends: Ends.make(), reservedSlots })
      })
    )
}

interface Codec {
  readonly encode: (payload: unknown) => string
  readonly decode: (text: string) => Option.Option<unknown>
}

// Made once, because a schema that is built for each job would be compiled for each job.
const codecOf = (schema: Schema.Codec<unknown, unknown>): Codec => {
  const json = Schema.fromJsonString(schema)
  return { encode: Schema.encodeUnknownSync(json), decode: Schema.decodeUnknownOption(json) }
}

const codecs = Record.map(payloads, codecOf)

/** Reads a stored payload; `undefined` if it does not have the shape of the kind. */
export const decodePayload = <K extends JobKind>(kind: K, payload: string): PayloadOf<K> | undefined =>
  Option.getOrUndefined(codecs[kind].decode(payload)) as PayloadOf<K> | undefined
