import * as Effect from "effect/Effect"
import type { Answer } from "../../engine/http/Message.ts"
import { withHeaders } from "../../engine/http/Message.ts"
import type { Moment, Subject } from "../../engine/queue/Queue.ts"
import { Waits } from "../../engine/queue/Waits.ts"

/** The job that is about to change an answer. */
export interface Awaited extends Subject {
  /** The longest that a client is told to wait between two polls, while the job is at work. */
  readonly pauseSeconds: number
}

/** What a client polls for: the answer, and the job that is about to change it, if one is. */
export interface Polled {
  readonly answer: Answer
  readonly awaits: Awaited | undefined
}

/**
 * An answer that may be another one in a moment (docs/decisions/wake-up.md, "Answers that wait a moment"). The request
 * gives its slot back before it waits.
 */
export interface PendingAnswer<E, R> {
  readonly answer: Answer
  readonly awaits: Awaited
  /** When it was made. */
  readonly since: Moment
  /** Makes it again, and says when to ask again if the job has still not ended. */
  readonly again: Effect.Effect<Answer, E, R>
}

const inSeconds = (answer: Answer, seconds: number): Answer => withHeaders(answer, { "retry-after": String(seconds) })

/** The answer for a client that cannot be held. */
export const notHeld = ({ answer, awaits }: Pick<PendingAnswer<never, never>, "answer" | "awaits">): Answer =>
  inSeconds(answer, awaits.pauseSeconds)

/** Answers a poll. */
export const polled = <E, R>(
  read: Effect.Effect<Polled, E, R>
): Effect.Effect<Answer | PendingAnswer<E, R>, E, R | Waits> =>
  Waits.use(({ moment, pause }) => {
    const since = moment()
    const again = Effect.flatMap(read, ({ answer, awaits }) =>
      awaits === undefined
        ? Effect.succeed(answer)
        : Effect.map(
          Effect.orElseSucceed(pause(awaits, awaits.pauseSeconds), () => awaits.pauseSeconds),
          (seconds) => inSeconds(answer, seconds)
        ))
    return Effect.map(read, ({ answer, awaits }) => awaits === undefined ? answer : { answer, awaits, since, again })
  })

/**
 * Answers the request that began a job. A client that heeds `Retry-After` is not to sleep while its first poll would be
 * held until the job ends.
 */
export const begun = (answer: Answer, awaits: Awaited): Effect.Effect<Answer, never, Waits> =>
  Waits.use(({ mayHold }) =>
    Effect.map(mayHold, (isHeld) => isHeld ? inSeconds(answer, 0) : notHeld({ answer, awaits }))
  )

/** Whether an answer may be another one in a moment. */
export const isPending = <E, R>(answer: Answer | PendingAnswer<E, R>): answer is PendingAnswer<E, R> =>
  "again" in answer
