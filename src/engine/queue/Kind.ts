import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type { StorageFailed } from "../sql/Database.ts"
import * as claims from "./Claims.ts"
import * as jobs from "./Job.ts"
import type { Job } from "./Job.ts"
import { periodicKey } from "./Job.ts"
import type { Commit, Failure, Outcome, QueueFailure } from "./Outcome.ts"
import type { Enqueue, KnownKinds } from "./Queue.ts"
import { Queue } from "./Queue.ts"
import type { RoomBy } from "./Slots.ts"

/** What the queue must know about a kind. */
export interface KindNeeds {
  /** How many of its jobs may run at once. Absent for kinds that have one row per subject: all their rows may run. */
  readonly room?: RoomBy
  /** Whether its jobs are enqueued at startup and reschedule themselves. */
  readonly periodic?: boolean
}

/** A kind of job: its needs, and how its payload is encoded and decoded. */
export interface Kind<P, S extends Schema.Top = Schema.Codec<P, unknown>> extends KindNeeds {
  readonly payload: S
  readonly encode: (payload: P) => string
  /** Decodes a payload. Returns `undefined` if the text does not have the shape of the kind. */
  readonly decode: (text: string) => P | undefined
}

/** Declares a kind. */
export const kind = <P, S extends Schema.Codec<P, unknown>>(
  self: KindNeeds & { readonly payload: S & Schema.Codec<P, unknown> }
): Kind<P, S> => {
  // This is made once, because a schema that is built for each job would also be compiled for each job.
  const json = Schema.fromJsonString(self.payload)
  const decode = Schema.decodeUnknownOption(json)
  return {
    ...self,
    encode: Schema.encodeSync(json),
    decode: (text) => Option.getOrUndefined(decode(text))
  }
}

/* The handlers of kinds. */

/** One row of a periodic kind: its key among the rows of the kind, and its payload. */
export interface Subject<P> {
  readonly key: string
  readonly payload: P
}

/** The row of a periodic kind that has only one row; its payload is empty. */
const everything: Subject<string> = { key: periodicKey, payload: "{}" }

/** How the runner handles one kind of job. */
export interface Handler<K extends string, P, R, F extends Failure = Failure> {
  readonly kind: K
  /** How many milliseconds one attempt may take. It is read when the attempt begins. */
  readonly budgetMillis: (payload: P) => number
  /**
   * How many seconds ahead the job may ask for its next run. This is needed only if it exceeds
   * `jobs.retry_max_seconds`.
   */
  readonly reachSeconds?: number
  /**
   * The rows of a periodic kind, if they depend on the configuration. They also run at each startup and reload, even
   * rows that are no longer listed. Other periodic kinds have one row.
   */
  readonly subjects?: ReadonlyArray<Subject<P>>
  readonly run: (payload: P, job: Job) => Effect.Effect<Outcome<R, F>, StorageFailed, R>
  /** Runs in the transaction that gives the job up. It does not run if the payload could not be read. */
  readonly abandon: (payload: P, failure: F | QueueFailure, job: Job) => Commit<R>
}

/** A handler without the types of its kind, as the runner's table stores it. */
export interface AnyHandler<R, F extends Failure = Failure> {
  readonly kind: string
  readonly reachSeconds: number
  /** Whether its jobs are enqueued at startup and reschedule themselves. */
  readonly periodic: boolean
  /** The rows that are enqueued at startup. */
  readonly subjects: ReadonlyArray<Subject<string>>
  /** Whether its rows depend on the configuration. */
  readonly looksAgain: boolean
  /** Called when an attempt begins, with the fiber of the attempt. The fiber ends when the attempt is settled. */
  readonly begun?: (fiber: Fiber.Fiber<unknown, unknown>) => void
  /** Prepares an attempt. Returns `undefined` if the payload is unreadable. */
  readonly prepare: (job: Job) =>
    | {
      readonly budgetMillis: number
      readonly run: Effect.Effect<Outcome<R, F>, StorageFailed, R>
      readonly abandon: (failure: F | QueueFailure) => Commit<R>
    }
    | undefined
}

/** A periodic row: its kind, its key and its payload. */
export interface Round extends Subject<string> {
  readonly kind: string
}

/** Returns the kinds that the handlers handle. */
export const kindsOf = (handlers: ReadonlyArray<{ readonly kind: string }>): ReadonlyArray<string> =>
  handlers.map(({ kind }) => kind)

/** Returns the periodic rows of these handlers. */
export const roundsOf = (
  handlers: ReadonlyArray<Pick<AnyHandler<never>, "kind" | "subjects">>
): ReadonlyArray<Round> => handlers.flatMap(({ kind, subjects }) => subjects.map((subject) => ({ kind, ...subject })))

/** Makes the statements whose texts name kinds. A program does this once. */
const knownOf = (kinds: { readonly [kind: string]: KindNeeds }, groupName: string): KnownKinds => {
  const names = Object.keys(kinds)
  return {
    groupName,
    roomOf: (kind, most) => kinds[kind]?.room?.(most),
    ...claims.claiming(names)
  }
}

/**
 * Makes the queue as programs use it. Its types follow from the kinds of the program's jobs. `groupName` is the name
 * that the log has for the group of a share.
 */
export const makeJobs = <P extends { readonly [kind: string]: unknown }>(
  kinds: { readonly [K in keyof P]: Kind<P[K]> },
  { groupName }: { readonly groupName: string }
) => {
  const known = knownOf(kinds, groupName)
  return {
    known,
    names: Struct.keys(kinds),
    cancel: jobs.cancel,

    enqueue: Effect.fnUntraced(function*<K extends keyof P & string>(job: Enqueue<K, P[K]>) {
      return yield* (yield* Queue).enqueue({ ...job, payload: kinds[job.kind].encode(job.payload) })
    }),

    decodePayload: <K extends keyof P & string>(kind: K, text: string): P[K] | undefined => kinds[kind].decode(text),

    handler: <K extends keyof P & string, R, F extends Failure = Failure>(
      self: Handler<K, P[K], R, F>
    ): AnyHandler<R, F> => {
      const { decode, encode, periodic = false } = kinds[self.kind]
      const subjects = self.subjects?.map(({ key, payload }) => ({ key, payload: encode(payload) }))
      return {
        kind: self.kind,
        reachSeconds: self.reachSeconds ?? 0,
        periodic,
        subjects: subjects ?? (periodic ? [everything] : []),
        looksAgain: subjects !== undefined,
        prepare: (job) => {
          const payload = decode(job.payload)
          return payload === undefined ? undefined : {
            budgetMillis: self.budgetMillis(payload),
            run: self.run(payload, job),
            abandon: (failure) => self.abandon(payload, failure, job)
          }
        }
      }
    }
  }
}
