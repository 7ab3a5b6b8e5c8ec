import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { ReceiverName } from "../../domain/ReceiverName.ts"

/** A row of the audit trail, with the members that operators get. A member without a value is absent. */
export interface PushedRow {
  readonly id: number
  /** The time in RFC 3339, in UTC. */
  readonly createdAt: string
  readonly event: string
  readonly outcome: string
  readonly identifiers: ReadonlyArray<string>
  readonly detail?: { readonly [name: string]: unknown }
  readonly [member: string]: unknown
}

/** A receiver has not taken rows. `detail` contains no secret. */
export class PushFailed extends Data.TaggedError("PushFailed")<{
  readonly detail: string
  /** For how many seconds the receiver asks to be left alone. */
  readonly afterSeconds?: number | undefined
  /** Whether the receiver refused the rows because they were too many octets at once. */
  readonly isTooLarge?: boolean
}> {}

/** A receiver of the audit trail, as the configuration describes it. */
export interface AuditReceiver {
  readonly name: ReceiverName
  /** The time limit of one attempt in milliseconds. */
  readonly timeoutMillis: number
  /**
   * Whether the receiver confirms that it has stored the rows. If not, the last rows are sent once more after a
   * failure.
   */
  readonly confirms: boolean
  /** Makes one attempt to send rows, within the time limit. Succeeds if the receiver has taken all of them. */
  readonly send: (rows: ReadonlyArray<PushedRow>) => Effect.Effect<void, PushFailed>
  /** Connects without sending a row. */
  readonly reach: Effect.Effect<void, PushFailed>
}
