import * as Effect from "effect/Effect"
import type { Answer } from "../../engine/http/Message.ts"
import { withHeaders } from "../../engine/http/Message.ts"
import type { Moment, Running, Subject } from "../../engine/queue/Ends.ts"
import { Waits } from "../../engine/queue/Waits.ts"

/** The job that will soon change an answer. */
export interface Awaited extends Subject {
  /** The longest pause between two polls that the answer asks for while the job runs. */
  readonly pauseSeconds: number
}

/** The result of a poll: the answer, and the job that will soon change the answer, if there is such a job. */
export interface Polled {
  readonly answer: Answer
  readonly awaits: Awaited | undefined
}

/**
 * An answer that may soon change (docs/contribute/decisions/wake-up.md, "Answers that wait a moment"). The request
 * gives its slot back before it waits.
 */
export interface PendingAnswer<E, R> {
  /** The current answer, or `undefined` if this process knows without a read that the job runs. */
  readonly answer: Answer | undefined
  readonly awaits: Awaited
  /** When the answer was made. */
  readonly since: Moment
  /** The longest time for which the answer is held, in milliseconds. `undefined` means as long as a poll. */
  readonly limitMillis?: number
  /** Makes the answer again. If the job still has not ended, the answer says when the client should poll again. */
  readonly again: Effect.Effect<Answer, E, R>
}

/** Returns the answer with the request to poll again after some seconds. */
export const inSeconds = (answer: Answer, seconds: number): Answer =>
  withHeaders(answer, { "retry-after": String(seconds) })

/** Reads the answer. If the job still has not ended, the answer says when the client should poll again. */
const readAgain = <E, R>(read: Effect.Effect<Polled, E, R>): Effect.Effect<Answer, E, R | Waits> =>
  Effect.flatMap(read, ({ answer, awaits }) =>
    awaits === undefined
      ? Effect.succeed(answer)
      : Waits.use(({ pause }) =>
        Effect.map(
          Effect.orElseSucceed(pause(awaits, awaits.pauseSeconds), () => awaits.pauseSeconds),
          (seconds) => inSeconds(answer, seconds)
        )
      ))

/**
 * Answers a poll. `expected` lists jobs that a request of this client may have begun. One of them changes the answer
 * when it ends. If this process runs one of them for the share of this client, the answer is read only when that job
 * has ended.
 */
export const polled = <E, R>(
  read: Effect.Effect<Polled, E, R>,
  expected: ReadonlyArray<Awaited & Running> = []
): Effect.Effect<Answer | PendingAnswer<E, R | Waits>, E, R | Waits> =>
  Waits.use(({ isRunning, moment }) => {
    const since = moment()
    const again = readAgain(read)
    const running = expected.find(isRunning)
    if (running !== undefined) {
      return Effect.succeed<Answer | PendingAnswer<E, R | Waits>>({ answer: undefined, awaits: running, since, again })
    }
    return Effect.map(read, ({ answer, awaits }) => awaits === undefined ? answer : { answer, awaits, since, again })
  })

/**
 * Answers a request that begins a job, or a repetition of that request. If `limitMillis` is above 0, the request is
 * held for at most this time, and the answer is read again when the job ends. If `limitMillis` is 0, the request is
 * answered at once. If the next poll can be held until the job ends, the `Retry-After` of this answer tells the client
 * to poll at once.
 */
export const begun = Effect.fnUntraced(function*<E, R, E2, R2>(
  begin: Effect.Effect<Polled & { readonly isFirst: boolean }, E, R>,
  { limitMillis, read }: { readonly limitMillis: number; readonly read: Effect.Effect<Polled, E2, R2> }
): Effect.fn.Return<Answer | PendingAnswer<E2, R2 | Waits>, E, R | Waits> {
  const { mayHold, moment } = yield* Waits
  const since = moment()
  const { answer, awaits, isFirst } = yield* begin
  if (awaits === undefined) return answer
  if (limitMillis > 0) return { answer, awaits, since, limitMillis, again: readAgain(read) }
  // A client may also poll by repeating this request. Such a poll is not held.
  return isFirst && (yield* mayHold) ? inSeconds(answer, 0) : inSeconds(answer, awaits.pauseSeconds)
})
