import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { StorageFailed } from "../sql/Database.ts"

/** Writes that belong to the settlement of an attempt. Either both are committed, or neither is. */
export type Commit<R> = Effect.Effect<void, StorageFailed, R>

/**
 * The bounds of the wait for the next attempt, in seconds. The wait is at least `atLeast`, for example because a server
 * asked for this wait, and never more than `atMost`.
 */
export interface RetryBounds {
  readonly atLeast?: number | undefined
  readonly atMost?: number | undefined
}

/** How an attempt ended (docs/contribute/decisions/job-outcomes.md, "Outcomes"). */
export type Outcome<R, F extends Failure = Failure> =
  /**
   * `ifJoined` runs if the job was enqueued again while it ran. It runs in the same transaction after the job has
   * ended, so that it can enqueue a successor. `discarded` runs if `commit` was not written and this attempt will not
   * write it later. `isMoot` means that there was nothing left to do: if this was the last attempt, the failure of an
   * earlier attempt is kept.
   */
  | {
    readonly _tag: "Done"
    readonly commit?: Commit<R>
    readonly ifJoined?: Commit<R>
    readonly discarded?: Effect.Effect<void, never, R>
    readonly isMoot?: boolean
  }
  /** The failure may be temporary. The job runs again after a backoff while attempts remain. */
  | ({ readonly _tag: "Retry"; readonly failure: F } & RetryBounds)
  /** Another attempt cannot help. The abandon step runs. */
  | { readonly _tag: "Failed"; readonly failure: F }
  /**
   * Periodic work that is due again at an epoch second, with its attempts counted from zero. `commit` runs in the same
   * transaction.
   */
  | { readonly _tag: "Reschedule"; readonly at: number; readonly failure?: F; readonly commit?: Commit<R> }

/** Says that the job is done. `writes` are part of the transaction that marks it as done. */
export const Done = <R = never>(
  writes: Omit<Extract<Outcome<R>, { readonly _tag: "Done" }>, "_tag"> = {}
): Outcome<R, never> => ({ _tag: "Done", ...writes })

/** Says that another attempt may succeed. */
export const Retry = <F extends Failure>(failure: F, bounds: RetryBounds = {}): Outcome<never, F> => ({
  _tag: "Retry",
  failure,
  ...bounds
})

/** Says that no other attempt can succeed. */
export const Failed = <F extends Failure>(failure: F): Outcome<never, F> => ({ _tag: "Failed", failure })

/**
 * Says that the job is due again at an epoch second. Until then the row keeps the failure. `commit` runs in the
 * transaction that changes the row.
 */
export const Reschedule = <R = never, F extends Failure = never>(
  at: number,
  more: { readonly failure?: F; readonly commit?: Commit<R> } = {}
): Outcome<R, F> => ({ _tag: "Reschedule", at, ...more })

/* The reasons for failed attempts that the queue itself knows. Handlers define further reasons. */

/** Why an attempt failed: `text` is for the log, `row` for the job's row. A successful attempt makes neither. */
export interface Failure {
  readonly text: string
  readonly row: string
}

const longest = 2000

/** Shortens a text to the length that is stored and shown. */
export const cut = (text: string): string => text.slice(0, longest)

/** A text from outside. It is whole during the attempt, and shortened in the row. */
export const Words = Schema.String.pipe(
  Schema.decodeTo(Schema.String, SchemaTransformation.transform({ decode: (kept) => kept, encode: cut }))
)

/** Returns the JSON of a failure, with its tag first. */
export const rowOf = <A, I extends { readonly _tag: string }>(schema: Schema.Codec<A, I>, failure: A): string => {
  const { _tag, ...facts } = Schema.encodeSync(schema)(failure)
  return JSON.stringify({ _tag, ...facts })
}

/** The job's deadline has passed, so the result of the attempt comes too late. */
export class DeadlinePassed extends Schema.TaggedClass<DeadlinePassed>()("DeadlinePassed", {}) implements Failure {
  get text(): string {
    return "deadline passed"
  }
  get row(): string {
    return rowOf(DeadlinePassed, this)
  }
}

/** The runner of the last attempt died, so the cause of that failure is not known. */
export class AttemptsUsedUp extends Schema.TaggedClass<AttemptsUsedUp>()("AttemptsUsedUp", {}) implements Failure {
  get text(): string {
    return "the attempts are used up"
  }
  get row(): string {
    return rowOf(AttemptsUsedUp, this)
  }
}

/** The payload does not match the schema of its kind. */
export class PayloadUnreadable extends Schema.TaggedClass<PayloadUnreadable>()("PayloadUnreadable", {})
  implements Failure {
  get text(): string {
    return "the payload cannot be read"
  }
  get row(): string {
    return rowOf(PayloadUnreadable, this)
  }
}

/** The row of the job cannot be read. */
export class RowUnreadable extends Schema.TaggedClass<RowUnreadable>()("RowUnreadable", { detail: Words })
  implements Failure {
  get text(): string {
    return `the row of the job cannot be read: ${this.detail}`
  }
  get row(): string {
    return rowOf(RowUnreadable, this)
  }
}

/** The attempt was interrupted at the end of its budget. */
export class BudgetSpent extends Schema.TaggedClass<BudgetSpent>()("BudgetSpent", {}) implements Failure {
  get text(): string {
    return "the attempt took longer than its budget"
  }
  get row(): string {
    return rowOf(BudgetSpent, this)
  }
}

/** A statement failed. */
export class DatabaseFailed extends Schema.TaggedClass<DatabaseFailed>()("DatabaseFailed", { detail: Words })
  implements Failure {
  get text(): string {
    return this.detail
  }
  get row(): string {
    return rowOf(DatabaseFailed, this)
  }
}

/** The attempt died of a defect. */
export class Panicked extends Schema.TaggedClass<Panicked>()("Panicked", { detail: Words }) implements Failure {
  get text(): string {
    return this.detail
  }
  get row(): string {
    return rowOf(Panicked, this)
  }
}

/** Every failure that the queue itself detects. */
export const queueFailures = [
  DeadlinePassed,
  AttemptsUsedUp,
  PayloadUnreadable,
  RowUnreadable,
  BudgetSpent,
  DatabaseFailed,
  Panicked
] as const

/** A failure that the queue itself detects, for any kind. The abandon step of every kind must handle it. */
export type QueueFailure = (typeof queueFailures)[number]["Type"]
