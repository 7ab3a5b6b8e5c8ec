import * as Effect from "effect/Effect"
import type { Awake } from "../Awake.ts"
import { makeAwake } from "../Awake.ts"
import { rows, text } from "../sql/Column.ts"
import type { StorageFailed } from "../sql/Database.ts"
import type { Database } from "../sql/Database.ts"
import { lenient } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"
import { lifeMillis } from "../Time.ts"
import type { Job } from "./Job.ts"

/* The ends of jobs, for requests that wait for them. */

/**
 * What identifies the work for which requests wait. A job that follows another job of the same kind and key is the same
 * work.
 */
export type Subject = Pick<Job, "kind" | "dedupKey">

/** A job that runs. */
export type Running = Subject & Pick<Job, "share">

/** A point in the order of the job ends that this process knows of. */
export type Moment = number

/**
 * The ends of jobs that this process knows of. The process knows the ends of its own jobs at once, and polls for the
 * ends of other processes' jobs while a request waits for them. No process sends notifications of ends: on PostgreSQL
 * each notification would wake every process that listens, and all commits with notifications wait for one lock.
 */
export interface Ends {
  /**
   * Returns the current moment. Call this before you read the state, and then wait for a change with {@link after};
   * otherwise you miss an end in between.
   */
  readonly moment: () => Moment
  /** Reports that an attempt at a job begins in this process, which then need not poll for the job's end. */
  readonly begun: (job: Running) => void
  /** Reports that the attempt is over. Its job may have another attempt, perhaps elsewhere. */
  readonly left: (subject: Subject) => void
  /** Reports after the commit that a job has ended. */
  readonly tell: (subject: Subject) => void
  /** Returns whether this process runs a job with this subject and share. */
  readonly isRunning: (job: Running) => boolean
  /** Completes when the subject's job has ended after the moment, and at once if the process stops. */
  readonly after: (moment: Moment, subject: Subject) => Effect.Effect<void>
  /**
   * Polls for the ends of other processes' jobs for which requests wait. The pauses between two polls for a job grow.
   */
  readonly look: Effect.Effect<void, StorageFailed, Database>
  /** Repeats `look` while requests wait for jobs of other processes. */
  readonly awake: Awake
  /** Ends every wait of {@link after}, now and later, because the process stops. */
  readonly stop: () => void
  readonly isStopped: () => boolean
}

// The subqueries are scalar, because PostgreSQL would join sets by reading all rows of the table.
const endedStatement = statement({
  name: "job_ended",
  params: { subjects: rows },
  row: { kind: text(), dedupKey: text() },
  sql: ({ at, each }) =>
    `SELECT kind AS "kind", dedup_key AS "dedupKey"
     FROM (SELECT ${at(0, "text")} AS kind, ${at(1, "text")} AS dedup_key FROM ${each(":subjects")}) AS awaited
     WHERE (SELECT j.id FROM jobs j WHERE j.kind = awaited.kind AND j.dedup_key = awaited.dedup_key
       AND j.status IN ('ready', 'running')) IS NULL`
})

interface Awaited {
  readonly subject: Subject
  readonly resumes: Set<() => void>
  pauseMillis: number
  /** When to poll next, in milliseconds since the start of the process. */
  lookAt: number
}

const textOf = ({ dedupKey, kind }: Subject): string => `${kind} ${dedupKey}`

// An end between the read and the wait is found among the remembered ends. If there were more ends than this in
// between, the wait lasts until its time is up.
const remembered = 4096

const tickMillis = 10
const firstPauseMillis = 20
const longestPauseMillis = 500
/** The highest number of subjects in one poll. */
const mostLooked = 500

/** Makes the ends of one process. There are none at first. */
export const makeEnds = (): Ends => {
  let last: Moment = 0
  const lately = new Map<string, Moment>()
  const waiting = new Map<string, Awaited>()
  const here = new Map<string, { readonly share: string; readonly attempts: number }>()
  let isStopped = false
  const awake = makeAwake(tickMillis, () => [...waiting.keys()].every((text) => here.has(text)))

  const tell = (subject: Subject) => {
    const text = textOf(subject)
    here.delete(text)
    lately.delete(text)
    lately.set(text, ++last)
    if (lately.size > remembered) lately.delete(lately.keys().next().value ?? "")
    const resumed = waiting.get(text)?.resumes
    waiting.delete(text)
    for (const resume of resumed ?? []) resume()
  }

  const due = (now: number): ReadonlyArray<Subject> => {
    const found: Array<Subject> = []
    for (const [text, awaited] of waiting) {
      if (here.has(text) || awaited.lookAt > now) continue
      awaited.lookAt = now + awaited.pauseMillis
      awaited.pauseMillis = Math.min(awaited.pauseMillis * 2, longestPauseMillis)
      found.push(awaited.subject)
      if (found.length === mostLooked) break
    }
    return found
  }

  const hurry = (subjects: ReadonlyArray<Subject>) => {
    for (const subject of subjects) {
      const awaited = waiting.get(textOf(subject))
      if (awaited !== undefined) awaited.lookAt = 0
    }
  }

  return {
    moment: () => last,
    begun: (job) => {
      const text = textOf(job)
      here.set(text, { share: job.share, attempts: (here.get(text)?.attempts ?? 0) + 1 })
    },
    isRunning: (job) => here.get(textOf(job))?.share === job.share,
    left: (subject) => {
      const text = textOf(subject)
      const { attempts = 1, share = "" } = here.get(text) ?? {}
      if (attempts > 1) here.set(text, { share, attempts: attempts - 1 })
      else here.delete(text)
      if (waiting.has(text)) awake.wake()
    },
    tell,
    after: (moment, subject) =>
      Effect.flatMap(lifeMillis, (now) =>
        Effect.callback<void>((resume) => {
          const text = textOf(subject)
          if (isStopped || (lately.get(text) ?? 0) > moment) return resume(Effect.void)
          const told = () => resume(Effect.void)
          const others = waiting.get(text)
          if (others === undefined) {
            waiting.set(text, {
              subject,
              resumes: new Set([told]),
              pauseMillis: firstPauseMillis * 2,
              lookAt: now + firstPauseMillis
            })
          } else others.resumes.add(told)
          awake.wake()
          return Effect.sync(() => {
            const all = waiting.get(text)?.resumes
            all?.delete(told)
            if (all?.size === 0) waiting.delete(text)
          })
        })),
    look: Effect.flatMap(lifeMillis, (now) => {
      const subjects = due(now)
      if (subjects.length === 0) return Effect.void
      const ended = lenient(endedStatement, { subjects: subjects.map(({ dedupKey, kind }) => [kind, dedupKey]) })
      // A reload ends the loop of the former configuration, perhaps during a poll for requests of the present one. The
      // loop of the present configuration then repeats this poll without the pause.
      return Effect.onInterrupt(Effect.map(ended, (all) => all.forEach(tell)), () => Effect.sync(() => hurry(subjects)))
    }),
    awake,
    stop: () => {
      isStopped = true
      for (const { subject } of waiting.values()) tell(subject)
    },
    isStopped: () => isStopped
  }
}
