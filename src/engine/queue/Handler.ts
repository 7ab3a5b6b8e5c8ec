import type * as Effect from "effect/Effect"
import type { StorageFailed } from "../sql/Database.ts"
import type { Failure, QueueFailure } from "./Failure.ts"
import type { Job } from "./Job.ts"
import { periodicKey } from "./Job.ts"

/** Writes that belong to the settlement of an attempt: both are committed, or neither. */
export type Commit<R> = Effect.Effect<void, StorageFailed, R>

/**
 * Bounds of the wait for the next attempt, in seconds: at least `atLeast`, if somebody asked for that wait, and never
 * more than `atMost`.
 */
export interface RetryBounds {
  readonly atLeast?: number | undefined
  readonly atMost?: number | undefined
}

/** How an attempt ended (docs/decisions/job-outcomes.md, "Outcomes"). */
export type Outcome<R, F extends Failure = Failure> =
  /**
   * `ifJoined` runs if the job was enqueued again while it ran. It runs in the same transaction, after the job has
   * ended in it, so that a successor can be enqueued. `discarded` runs if `commit` was not written and this attempt
   * will not write it any more. `isMoot` means that there was nothing left to do: if this was the last attempt, a
   * failure of an earlier one is kept.
   */
  | {
    readonly _tag: "Done"
    readonly commit?: Commit<R>
    readonly ifJoined?: Commit<R>
    readonly discarded?: Effect.Effect<void, never, R>
    readonly isMoot?: boolean
  }
  /** The failure may be temporary. The job is tried again after backoff while attempts remain. */
  | ({ readonly _tag: "Retry"; readonly failure: F } & RetryBounds)
  /** Another attempt cannot help. The abandon step runs. */
  | { readonly _tag: "Failed"; readonly failure: F }
  /**
   * Periodic work that is due again at an epoch second, with its attempts counted from zero. `commit` runs in the same
   * transaction.
   */
  | { readonly _tag: "Reschedule"; readonly at: number; readonly failure?: F; readonly commit?: Commit<R> }

/** The job is done. `writes` belong to the transaction that marks it as done. */
export const Done = <R = never>(
  writes: Omit<Extract<Outcome<R>, { readonly _tag: "Done" }>, "_tag"> = {}
): Outcome<R, never> => ({ _tag: "Done", ...writes })

/** Another attempt may succeed. */
export const Retry = <F extends Failure>(failure: F, bounds: RetryBounds = {}): Outcome<never, F> => ({
  _tag: "Retry",
  failure,
  ...bounds
})

/** No other attempt can succeed. */
export const Failed = <F extends Failure>(failure: F): Outcome<never, F> => ({ _tag: "Failed", failure })

/**
 * Due again at an epoch second. Until then the row keeps the failure. `commit` runs in the transaction that changes the
 * row.
 */
export const Reschedule = <R = never, F extends Failure = never>(
  at: number,
  more: { readonly failure?: F; readonly commit?: Commit<R> } = {}
): Outcome<R, F> => ({ _tag: "Reschedule", at, ...more })

/** One row of a periodic kind: its key among the rows of the kind, and its payload. */
export interface Subject<P> {
  readonly key: string
  readonly payload: P
}

/** The row of a periodic kind that has one, with an empty payload. */
export const everything: Subject<string> = { key: periodicKey, payload: "{}" }

/** How the runner handles one kind of job. */
export interface Handler<K extends string, P, R, F extends Failure = Failure> {
  readonly kind: K
  /** Milliseconds one attempt may take, read when it begins. */
  readonly budgetMillis: (payload: P) => number
  /**
   * How many seconds ahead the job may ask for its next run. Needed only if that is more than `jobs.retry_max_seconds`.
   */
  readonly reachSeconds?: number
  /**
   * The rows of a periodic kind, if the configuration decides which there are. They run at each start and reload too,
   * even those that are no longer listed. Other periodic kinds have one row.
   */
  readonly subjects?: ReadonlyArray<Subject<P>>
  readonly run: (payload: P, job: Job) => Effect.Effect<Outcome<R, F>, StorageFailed, R>
  /** Runs in the transaction that gives the job up. Does not run if the payload could not be read. */
  readonly abandon: (payload: P, failure: F | QueueFailure, job: Job) => Commit<R>
}

/** A handler without its kind's types, as the runner's table holds it. */
export interface AnyHandler<R, F extends Failure = Failure> {
  readonly kind: string
  readonly reachSeconds: number
  /** Its jobs are enqueued at start and reschedule themselves. */
  readonly periodic: boolean
  /** The rows that are enqueued at start. */
  readonly subjects: ReadonlyArray<Subject<string>>
  /** Its rows depend on the configuration. */
  readonly looksAgain: boolean
  /** `undefined` if the payload is unreadable. */
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

/** The kinds that the handlers handle. */
export const kindsOf = (handlers: ReadonlyArray<{ readonly kind: string }>): ReadonlyArray<string> =>
  handlers.map(({ kind }) => kind)

/** The periodic rows of these handlers. */
export const roundsOf = (
  handlers: ReadonlyArray<Pick<AnyHandler<never>, "kind" | "subjects">>
): ReadonlyArray<Round> => handlers.flatMap(({ kind, subjects }) => subjects.map((subject) => ({ kind, ...subject })))
