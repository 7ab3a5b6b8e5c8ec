import { Schema } from "effect"

/* Why attempts fail, as far as the queue knows. What its handlers know beside that is theirs to name. */

/** Why an attempt failed: words for the log, and what its row keeps of it. Neither is made for an attempt that succeeds. */
export interface Failure {
  readonly text: string
  readonly row: string
}

const longest = 2000

/** As much of a text as is kept and shown. */
export const cut = (text: string): string => text.slice(0, longest)

/** Somebody else's words: whole as long as the attempt has them, cut on the row. */
export const Words = Schema.transform(Schema.String, Schema.String, {
  strict: true,
  decode: (kept) => kept,
  encode: cut
})

/** JSON of a failure, its tag first. */
export const rowOf = <A, I extends { readonly _tag: string }>(schema: Schema.Schema<A, I>, failure: A): string => {
  const { _tag, ...facts } = Schema.encodeSync(schema)(failure)
  return JSON.stringify({ _tag, ...facts })
}

/** The job's deadline has passed; what the attempt found out comes too late. */
export class DeadlinePassed extends Schema.TaggedClass<DeadlinePassed>()("DeadlinePassed", {}) implements Failure {
  get text(): string {
    return "deadline passed"
  }
  get row(): string {
    return rowOf(DeadlinePassed, this)
  }
}

/** The runner that took the last attempt died, and nobody knows why that one failed. */
export class AttemptsUsedUp extends Schema.TaggedClass<AttemptsUsedUp>()("AttemptsUsedUp", {}) implements Failure {
  get text(): string {
    return "the attempts are used up"
  }
  get row(): string {
    return rowOf(AttemptsUsedUp, this)
  }
}

/** The payload is none of its kind. */
export class PayloadUnreadable extends Schema.TaggedClass<PayloadUnreadable>()("PayloadUnreadable", {})
  implements Failure {
  get text(): string {
    return "the payload cannot be read"
  }
  get row(): string {
    return rowOf(PayloadUnreadable, this)
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

/** Every failure the queue finds by itself. */
export const queueFailures = [
  DeadlinePassed,
  AttemptsUsedUp,
  PayloadUnreadable,
  BudgetSpent,
  DatabaseFailed,
  Panicked
] as const

/** A failure the queue finds by itself, whatever the kind: each abandon step has to understand them. */
export type QueueFailure = (typeof queueFailures)[number]["Type"]
