import { Effect } from "effect"
import type { Answer } from "../../kernel/http/Message.ts"
import type { Moment, Subject } from "../../kernel/queue/Ends.ts"
import { Waits } from "../../kernel/queue/Waits.ts"

/** What a client polls for: the answer, and the job that is about to change it, if one is. */
export interface Polled {
  readonly answer: Answer
  readonly awaits: Subject | undefined
}

/**
 * An answer that may be another one in a moment (docs/decisions/wake-up.md, "Answers that wait a moment"). The request
 * gives its slot back before it waits.
 */
export interface Unsettled<E, R> {
  readonly answer: Answer
  readonly awaits: Subject
  /** When it was made. */
  readonly since: Moment
  /** Makes it again. */
  readonly again: Effect.Effect<Polled, E, R>
}

/** Answers a poll. */
export const polled = <E, R>(
  read: Effect.Effect<Polled, E, R>
): Effect.Effect<Answer | Unsettled<E, R>, E, R | Waits> =>
  Effect.flatMap(Waits, ({ moment }) => {
    const since = moment()
    return Effect.map(
      read,
      ({ answer, awaits }) => awaits === undefined ? answer : { answer, awaits, since, again: read }
    )
  })

/** Whether an answer may be another one in a moment. */
export const isUnsettled = <E, R>(answer: Answer | Unsettled<E, R>): answer is Unsettled<E, R> => "again" in answer
