import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import { makeAwake } from "../Awake.ts"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { emit, withinSpan } from "../telemetry/EngineLog.ts"
import { traced } from "../telemetry/Tracing.ts"
import { currentMillis, lifeMillis } from "../Time.ts"
import type { Ends } from "./Ends.ts"
import type { Job } from "./Job.ts"
import { groupOf } from "./Job.ts"
import type { AnyHandler } from "./Kind.ts"
import type { Holding } from "./Leases.ts"
import type { Failure, Outcome, QueueFailure } from "./Outcome.ts"
import { AttemptsUsedUp, cut, DeadlinePassed, PayloadUnreadable, RowUnreadable } from "./Outcome.ts"
import type { Ended, Ending, Settlement } from "./Settlement.ts"

/* Runs the attempts of one runner, each from its claimed row to its settlement. */

const giveUpMillis = 5000
const overdueCheckMillis = 100

interface Attempt extends Holding {
  /** The end of the attempt's budget, in milliseconds since the start of the process. */
  readonly endsAt: number
  /** The deadline of the job, in epoch milliseconds. */
  readonly deadline: number
  readonly interrupt: Effect.Effect<void>
  ending: Ending
}

const settlementRetries = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("1 second")])

const deadlineOf = ({ deadline }: Job): number => deadline === undefined ? Number.POSITIVE_INFINITY : deadline * 1000

/** Returns why a claimed job with a readable payload is given up without an attempt, or undefined if it is not. */
const hopeless = (job: Job, periodic: boolean, startedAt: number): QueueFailure | undefined => {
  if (job.unreadable !== undefined && !periodic) return new RowUnreadable({ detail: job.unreadable })
  if (deadlineOf(job) <= startedAt) return new DeadlinePassed()
  // The attempts are used up although the job is not settled: the runner of the last attempt died.
  return job.attempts > job.maxAttempts && !periodic ? new AttemptsUsedUp() : undefined
}

/** Makes the attempts of a runner. There are none at first. */
export const make = <R, F extends Failure>(runner: {
  readonly inForce: {
    readonly handlers: ReadonlyMap<string, AnyHandler<R, F>>
    /** Whether the runner stops. */
    readonly isDraining: boolean
  }
  readonly settlement: Settlement
  /** Gives the slot of an attempt back, however the attempt ended. */
  readonly release: (job: Job) => Effect.Effect<void>
  /** Is told when an attempt at a job begins in this process, and when the attempt is over. */
  readonly ends: Pick<Ends, "begun" | "left">
  /** The name of the group of a share in the records of an attempt. */
  readonly groupName: string
}) => {
  const { settlement } = runner
  const running = new Set<Attempt>()
  const awake = makeAwake(overdueCheckMillis, () => running.size === 0)

  /**
   * Repeats a failed settlement with the same result until `endsAt`. After that the row becomes free when its lease
   * ends.
   */
  const insisting = <A>(settle: Effect.Effect<A, StorageFailed, R | Database>, endsAt: number) =>
    Effect.catch(settle, () =>
      Effect.retry(Effect.delay(settle, "50 millis"), {
        schedule: settlementRetries,
        while: () => Effect.map(lifeMillis, (life) => !runner.inForce.isDraining && life < endsAt)
      }))

  /**
   * Settles an attempt. If its result cannot be written, the job runs again and the attempt is not counted. After a
   * defect in the writes, the attempt counts as panicked.
   */
  const settleExit = Effect.fnUntraced(function*(
    ended: Ended<R, F>,
    exit: Exit.Exit<Outcome<R, F>, StorageFailed>,
    current: Attempt
  ) {
    const endsAt = Math.max(current.endsAt, (yield* lifeMillis) + giveUpMillis)
    const done = Exit.isSuccess(exit) && exit.value._tag === "Done" ? exit.value : undefined
    const discarded = done?.discarded ?? Effect.void
    yield* insisting(settlement.exited(ended, exit, current), endsAt).pipe(
      Effect.catch((error) =>
        done === undefined ? Effect.fail(error) : Effect.andThen(discarded, settlement.uncount(ended.job, current))
      ),
      Effect.catchDefect((defect) =>
        Effect.andThen(discarded, insisting(settlement.exited(ended, Exit.die(defect), current), endsAt))
      )
    )
  })

  /** Gives a job up without an attempt. */
  const giveUp = Effect.fnUntraced(function*(ended: Ended<R, F>, failure: QueueFailure) {
    const { attempts, id, kind } = ended.job
    const life = yield* lifeMillis
    if (failure._tag === "DeadlinePassed") yield* emit("job_deadline_passed", { kind, job_id: id, attempts })
    yield* insisting(settlement.giveUp(ended, failure), life + giveUpMillis)
  })

  /** Runs a handler and settles its outcome, however it ends. */
  const attempt = Effect.fnUntraced(function*(
    ended: Ended<R, F>,
    { budgetMillis, run }: NonNullable<ReturnType<AnyHandler<R, F>["prepare"]>>,
    heldAt: number
  ) {
    const { job } = ended
    const life = yield* lifeMillis
    const fiber: Fiber.Fiber<Outcome<R, F>, StorageFailed> = yield* Effect.forkChild(run, { startImmediately: true })
    const current: Attempt = {
      job,
      heldAt,
      spentAt: life,
      endsAt: life + budgetMillis,
      deadline: deadlineOf(job),
      interrupt: Effect.sync(() => fiber.interruptUnsafe()),
      ending: undefined
    }
    running.add(current)
    awake.wake()
    yield* Effect.ensuring(
      Effect.flatMap(Fiber.await(fiber), (exit) => settleExit(ended, exit, current)),
      Effect.sync(() => running.delete(current))
    )
  })

  /** Handles a claimed row: runs an attempt at its job, or ends the job without an attempt. */
  const claimed = Effect.fnUntraced(
    function*(job: Job, startedAt: number, heldAt: number) {
      const fiber = yield* Effect.fiber
      // This is one step, so that the resources of the handler are not released in between.
      const known = runner.inForce.handlers.get(job.kind)
      known?.begun?.(fiber)
      const prepared = known?.prepare(job)
      const periodic = known?.periodic === true
      const ended = { job, startedAt, periodic, abandon: prepared?.abandon ?? (() => Effect.void) }
      const failure = hopeless(job, periodic, startedAt)
      if (failure !== undefined || prepared === undefined) {
        return yield* giveUp(ended, failure ?? new PayloadUnreadable())
      }
      yield* attempt(ended, prepared, heldAt)
    },
    Effect.catch(() => Effect.void), // This is already logged. When the lease ends, the row is ready again.
    (self, { attempts, id, kind }) =>
      Effect.catchDefect(
        self,
        (defect) => emit("job_run_panicked", { kind, job_id: id, attempts, error: cut(String(defect)) })
      )
  )

  /** Interrupts the attempts that must end, and remembers why. */
  const interruptEvery = (ending: NonNullable<Ending>, due: (attempt: Attempt) => boolean) =>
    Effect.forEach(running, (attempt) => {
      if (attempt.ending !== undefined || !due(attempt)) return Effect.void
      attempt.ending = ending
      return attempt.interrupt
    }, { discard: true })

  return {
    /** The attempts that run now. */
    running,
    /** The check that runs while there are attempts. */
    awake,
    /**
     * Runs the whole attempt at a job. `heldAt` is when this runner was last known to hold the row, in milliseconds
     * since the start of the process.
     */
    run: Effect.fnUntraced(function*(job: Job, heldAt: number) {
      const startedAt = yield* currentMillis
      const { attempts: attempt, id: job_id, kind, share } = job
      runner.ends.begun(job)
      const handled = Effect.ensuring(
        claimed(job, startedAt, heldAt),
        Effect.suspend(() => {
          runner.ends.left(job)
          return runner.release(job)
        })
      )
      yield* withinSpan(
        { job_id, job_kind: kind, [runner.groupName]: groupOf(share) || undefined },
        startedAt,
        traced(kind, () => ({ job_id, attempt }), handled)
      )
    }),
    interruptEvery,
    /** Interrupts attempts that are over budget or past their deadline, and attempts whose rows may have been lost. */
    interruptOverdue: (isDoubtful: (attempt: Attempt, life: number) => boolean) =>
      Effect.gen(function*() {
        const life = yield* lifeMillis
        const now = yield* currentMillis
        yield* interruptEvery("timeout", ({ deadline, endsAt }) => endsAt <= life || deadline <= now)
        yield* interruptEvery("unheld", (attempt) => isDoubtful(attempt, life))
      })
  }
}
