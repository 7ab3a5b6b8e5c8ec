import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

/* The reasons for failed attempts that the queue itself knows. Handlers define further ones. */

/**
 * Why an attempt failed: `text` is for the log, `row` for the job's row. Neither is made for an attempt that succeeds.
 */
export interface Failure {
  readonly text: string
  readonly row: string
}

const longest = 2000

/** Cuts a text to the length that is kept and shown. */
export const cut = (text: string): string => text.slice(0, longest)

/** A text from elsewhere. It is whole during the attempt, and cut in the row. */
export const Words = Schema.String.pipe(
  Schema.decodeTo(Schema.String, SchemaTransformation.transform({ decode: (kept) => kept, encode: cut }))
)

/** The JSON of a failure, with its tag first. */
export const rowOf = <A, I extends { readonly _tag: string }>(schema: Schema.Codec<A, I>, failure: A): string => {
  const { _tag, ...facts } = Schema.encodeSync(schema)(failure)
  return JSON.stringify({ _tag, ...facts })
}

/** The job's deadline has passed. The result of the attempt comes too late. */
export class DeadlinePassed extends Schema.TaggedClass<DeadlinePassed>()("DeadlinePassed", {}) implements Failure {
  get text(): string {
    return "deadline passed"
  }
  get row(): string {
    return rowOf(DeadlinePassed, this)
  }
}

/** The runner of the last attempt died, so it is not known why that attempt failed. */
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

/** Every failure that the queue finds by itself. */
export const queueFailures = [
  DeadlinePassed,
  AttemptsUsedUp,
  PayloadUnreadable,
  RowUnreadable,
  BudgetSpent,
  DatabaseFailed,
  Panicked
] as const

/** A failure that the queue finds by itself, for any kind. The abandon step of every kind has to understand it. */
export type QueueFailure = (typeof queueFailures)[number]["Type"]
