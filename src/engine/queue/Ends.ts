import * as Effect from "effect/Effect"
import type { Job } from "./Job.ts"

/** What identifies the work that waits are for. A job that follows another one of the same kind and key is the same work. */
export type Subject = Pick<Job, "kind" | "dedupKey">

/** A point in the order of the ends that this process has heard of. */
export type Moment = number

/**
 * The ends of jobs that this process hears of: its own at once, and those of other processes if the database sends
 * notifications.
 */
export interface Ends {
  /**
   * The current moment. Read it before the state whose change {@link after} shall wait for; otherwise an end in between
   * is missed.
   */
  readonly moment: () => Moment
  /** Says that a job has ended, after the commit. */
  readonly tell: (subject: string) => void
  /** Completes once the subject's job has ended after the moment. */
  readonly after: (moment: Moment, subject: Subject) => Effect.Effect<void>
}

/** The text of a subject, as notifications carry it. */
export const subjectText = ({ dedupKey, kind }: Subject): string => `${kind} ${dedupKey}`

// An end between the read and the wait is found among these. If more ends than this came in between, the wait lasts
// until its time is up.
const remembered = 4096

/** The ends of one process, none at first. */
export const make = (): Ends => {
  let last: Moment = 0
  const lately = new Map<string, Moment>()
  const waiting = new Map<string, Set<() => void>>()
  return {
    moment: () => last,
    tell: (subject) => {
      lately.delete(subject)
      lately.set(subject, ++last)
      if (lately.size > remembered) lately.delete(lately.keys().next().value ?? "")
      const resumed = waiting.get(subject)
      waiting.delete(subject)
      for (const resume of resumed ?? []) resume()
    },
    after: (moment, subject) =>
      Effect.callback<void>((resume) => {
        const text = subjectText(subject)
        if ((lately.get(text) ?? 0) > moment) return resume(Effect.void)
        const told = () => resume(Effect.void)
        const others = waiting.get(text)
        if (others === undefined) waiting.set(text, new Set([told]))
        else others.add(told)
        return Effect.sync(() => {
          const all = waiting.get(text)
          all?.delete(told)
          if (all?.size === 0) waiting.delete(text)
        })
      })
  }
}
