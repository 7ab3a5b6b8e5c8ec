import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Entropy } from "../../crypto/Entropy.ts"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { transaction } from "../sql/Database.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, currentSeconds, lifeMillis } from "../Time.ts"
import * as jobs from "./Job.ts"
import type { Job } from "./Job.ts"
import type { Holding } from "./Leases.ts"
import { spentSince } from "./Leases.ts"
import type { Commit, Failure, Outcome, QueueFailure, RetryBounds } from "./Outcome.ts"
import { BudgetSpent, cut, DatabaseFailed, DeadlinePassed, Panicked } from "./Outcome.ts"

/** The settlement matched no row: the lease was taken away, so the result of the attempt is dropped. */
class LeaseLost extends Data.TaggedError("LeaseLost") {}

/** `jobs.retry_*` in seconds. */
export interface BackoffPolicy {
  readonly retry_base_seconds: number
  readonly retry_max_seconds: number
}

// 2^30 seconds exceed any limit. Clamping the exponent keeps the product finite.
const maxExponent = 30

/**
 * Returns the seconds until the next attempt after `attempts` attempts (from 1). These seconds double each time up to
 * the limit. A random part of up to a quarter is subtracted. `random` is uniform in [0, 1).
 */
export const backoffSeconds = (attempts: number, policy: BackoffPolicy, random: number): number => {
  const exponent = Math.min(Math.max(attempts - 1, 0), maxExponent)
  const full = Math.min(policy.retry_max_seconds, policy.retry_base_seconds * 2 ** exponent)
  return Math.max(1, Math.round(full - full * 0.25 * random))
}

/** An attempt that has ended: its job, whether its kind is periodic, and the kind's abandon step. */
export interface Ended<R, F extends Failure> {
  readonly job: Job
  readonly periodic: boolean
  readonly startedAt: number
  readonly abandon: (failure: F | QueueFailure) => Commit<R>
}

/**
 * Why an attempt's fiber was interrupted, if it was. `lost` means that another process holds the row. `unheld` means
 * that another process may hold the row, but this process cannot find out.
 */
export type Ending = "timeout" | "shutdown" | "lost" | "unheld" | undefined

/** An attempt that held its row while it ran. */
export type Ran = Pick<Holding, "spentAt"> & { readonly ending: Ending }

const leftAsItIs = "nothing was left to do, and the failure before stays"

const facts = (job: Job) => ({ kind: job.kind, job_id: job.id })
const leaseLost = (job: Job) => emit("job_lease_lost", { ...facts(job), attempts: job.attempts })

/** The settlement of a runner's attempts. */
export type Settlement = ReturnType<typeof make>

/**
 * Makes the functions that write the ends of attempts. One transaction has both the settlement of the row and the
 * writes of the outcome. If the lease was lost in the meantime, the whole transaction is rolled back.
 */
export const make = (options: {
  readonly owner: string
  readonly backoff: () => BackoffPolicy
  readonly entropy: Entropy["Service"]
  /** Runs for each row that is handed back at shutdown. */
  readonly onHandedBack: Effect.Effect<void>
  /** Called with the due time, in epoch seconds, of each row that is put back. */
  readonly onDueLater: (runAt: number) => Effect.Effect<void>
  /** Called after the commit of each end of a job. */
  readonly onEnded: (job: Job) => void
}) => {
  const attemptOf = (job: Job) => ({ id: job.id, owner: options.owner, attempts: job.attempts })

  const settle = <R>(
    job: Job,
    writes: Commit<R>,
    row: Effect.Effect<unknown, StorageFailed, R | Database>
  ): Effect.Effect<boolean, StorageFailed, R | Database> =>
    transaction(
      Effect.andThen(
        writes,
        Effect.filterOrFail(row, (settled) => settled !== undefined, () => new LeaseLost())
      )
    ).pipe(
      Effect.as(true),
      Effect.catchTag("LeaseLost", () => Effect.as(leaseLost(job), false))
    )

  /** Makes the row `failed` and runs the abandon step. */
  const giveUp = Effect.fnUntraced(function*<R, F extends Failure>(
    { abandon, job }: Ended<R, F>,
    failure: F | QueueFailure
  ) {
    const row = jobs.settle(attemptOf(job), "failed", failure.row, yield* currentSeconds)
    if (yield* settle(job, abandon(failure), row)) {
      options.onEnded(job)
      yield* emit("job_run_abandoned", { ...facts(job), attempts: job.attempts, error: failure.text })
    }
  })

  /**
   * Makes the row `ready` again, or gives the job up if its attempts are used up. Periodic work is never given up for
   * this reason.
   */
  const tryAgain = Effect.fnUntraced(function*<R, F extends Failure>(
    ended: Ended<R, F>,
    failure: F | QueueFailure,
    delaySeconds: number,
    ran: Ran
  ) {
    const { job, periodic } = ended
    if (job.attempts >= job.maxAttempts && !periodic) return yield* giveUp(ended, failure)
    const now = yield* currentSeconds
    const deadline = job.deadline ?? Number.POSITIVE_INFINITY
    if (now >= deadline) {
      yield* emit("job_deadline_passed", { ...facts(job), attempts: job.attempts })
      return yield* giveUp(ended, new DeadlinePassed())
    }
    const runAt = Math.min(now + delaySeconds, deadline)
    const spent = spentSince(ran, yield* lifeMillis) + runAt - now
    const to = { runAt, attemptsAfter: job.attempts, spent, error: failure.row, now }
    if (yield* settle(job, Effect.void, jobs.reschedule(attemptOf(job), to))) {
      yield* emit("job_run_retried", { ...facts(job), attempts: job.attempts, error: failure.text })
      yield* options.onDueLater(runAt)
    }
  })

  const tryAgainLater = <R, F extends Failure>(
    ended: Ended<R, F>,
    failure: F | QueueFailure,
    ran: Ran,
    { atLeast = 0, atMost = Number.POSITIVE_INFINITY }: RetryBounds = {}
  ) =>
    Effect.flatMap(options.entropy.fraction, (fraction) => {
      const backoff = backoffSeconds(ended.job.attempts, options.backoff(), fraction)
      return tryAgain(ended, failure, Math.min(Math.max(backoff, atLeast), atMost), ran)
    })

  /** Makes the row `ready` again, due now, as if the attempt had not been made. */
  const uncount = Effect.fnUntraced(function*(job: Job, ran: Ran) {
    const now = yield* currentSeconds
    const spent = spentSince(ran, yield* lifeMillis)
    const to = { runAt: now, attemptsAfter: Math.max(job.attempts - 1, 0), spent, error: undefined, now }
    return yield* settle(job, Effect.void, jobs.reschedule(attemptOf(job), to))
  })

  /** Hands a row back at shutdown. */
  const handBack = (job: Job, ran: Ran) =>
    Effect.flatMap(uncount(job, ran), (settled) => settled ? options.onHandedBack : Effect.void)

  const conclude = Effect.fnUntraced(
    function*<R, F extends Failure>(ended: Ended<R, F>, outcome: Outcome<R, F>, ran: Ran) {
      const { job } = ended
      switch (outcome._tag) {
        case "Retry":
          return yield* tryAgainLater(ended, outcome.failure, ran, outcome)
        case "Failed":
          return yield* giveUp(ended, outcome.failure)
        case "Done": {
          const millis = yield* currentMillis
          const { commit = Effect.void, ifJoined = Effect.void, isMoot = false } = outcome
          const now = Math.floor(millis / 1000)
          let hasFailed = false
          const end = isMoot && job.attempts >= job.maxAttempts
            ? Effect.tap(
              jobs.settleMoot(attemptOf(job), now),
              (row) => Effect.sync(() => void (hasFailed = row?.status === "failed"))
            )
            : jobs.settle(attemptOf(job), "done", undefined, now)
          const row = Effect.tap(end, (settled) => settled?.joined === 1 ? ifJoined : Effect.void)
          if (!(yield* settle(job, commit, row))) return yield* outcome.discarded ?? Effect.void
          options.onEnded(job)
          return yield* hasFailed
            ? emit("job_run_abandoned", { ...facts(job), attempts: job.attempts, error: leftAsItIs })
            : emit("job_run_completed", { ...facts(job), elapsed_ms: millis - ended.startedAt })
        }
        case "Reschedule": {
          const now = yield* currentSeconds
          const to = { runAt: outcome.at, attemptsAfter: 0, spent: 0, error: outcome.failure?.row, now }
          if (yield* settle(job, outcome.commit ?? Effect.void, jobs.reschedule(attemptOf(job), to))) {
            yield* options.onDueLater(outcome.at)
          }
        }
      }
    }
  )

  const exited = <R, F extends Failure>(
    ended: Ended<R, F>,
    exit: Exit.Exit<Outcome<R, F>, StorageFailed>,
    ran: Ran
  ): Effect.Effect<void, StorageFailed, R | Database> => {
    if (Exit.isSuccess(exit)) return conclude(ended, exit.value, ran)
    const { cause } = exit
    const { job } = ended
    // If a defect occurred and other fibers were interrupted, the defect counts.
    if (ran.ending !== undefined || Cause.hasInterruptsOnly(cause)) {
      switch (ran.ending) {
        case "timeout":
          return tryAgainLater(ended, new BudgetSpent(), ran)
        case "lost":
          return leaseLost(job)
        case "unheld":
          return Effect.asVoid(uncount(job, ran))
        default:
          return handBack(job, ran)
      }
    }
    const failure = Cause.findErrorOption(cause)
    if (failure._tag === "Some") return tryAgainLater(ended, new DatabaseFailed({ detail: failure.value.message }), ran)
    const panicked = new Panicked({ detail: cut(String(Cause.squash(cause))) })
    return Effect.andThen(
      emit("job_run_panicked", { ...facts(job), attempts: job.attempts, error: panicked.text }),
      // Periodic work is never given up. Without a wait it would be tried endlessly.
      ended.periodic ? tryAgainLater(ended, panicked, ran) : tryAgain(ended, panicked, 0, ran)
    )
  }

  return { exited, giveUp, handBack, uncount }
}
