import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Mailbox from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { Entropy } from "../../crypto/Entropy.ts"
import type { Loops } from "../Loops.ts"
import { untilBack } from "../Retries.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { Database } from "../sql/Database.ts"
import { supervised } from "../Supervised.ts"
import { emit } from "../telemetry/EngineLog.ts"
import type { Failure } from "./Failure.ts"
import type { AnyHandler } from "./Handler.ts"
import { kindsOf, roundsOf } from "./Handler.ts"
import * as jobRecords from "./JobRecords.ts"
import { Queue } from "./Queue.ts"
import type { RunnerOptions, Tuning } from "./Runner.ts"
import { make } from "./Runner.ts"

/** A runner at work. */
export interface Running<R, F extends Failure = Failure> {
  /**
   * Changes to other settings and handlers. Running attempts finish with those that they began with. Periodic kinds
   * that were not known before are enqueued; if the database cannot take them now, as soon as it can.
   */
  readonly retune: (tuning: Tuning, handlers: ReadonlyArray<AnyHandler<R, F>>) => Effect.Effect<void>
  /**
   * Claims no more jobs, gives running attempts five seconds, and hands the rest back without counting the attempt.
   * Answers how many were handed back.
   */
  readonly stop: Effect.Effect<number>
}

/**
 * Claims due jobs of the given handlers' kinds and runs them, at most `max_concurrent` at once. A handler that fails or
 * panics, or an unavailable database, ends an attempt, never the runner.
 */
export const start = <R, F extends Failure>(
  options: RunnerOptions,
  handlers: ReadonlyArray<AnyHandler<R, F>>
): Effect.Effect<Running<R, F>, StorageFailed, Queue | Database | Entropy | Loops | Scope.Scope | R> =>
  Effect.gen(function*() {
    const queue = yield* Queue
    const database = yield* Database
    const { owner } = options
    const runner = yield* make(options, handlers)
    yield* runner.enqueuePeriodic()
    yield* emit("job_runner_started", { owner })
    // Unknown kinds are left for a worker that knows them: an older or a newer version may run beside this one
    // (docs/decisions/compatibility.md, "Neighbours").
    for (const unknown of yield* jobRecords.unknownKinds(kindsOf(handlers))) {
      yield* emit("job_kind_unknown", unknown)
    }
    let known = handlers
    let enqueued = roundsOf(handlers)
    const turns = yield* Semaphore.make(1)
    /** Enqueues the periodic rows of the handlers in force that were not enqueued before. */
    const enqueueNew = turns.withPermits(1)(Effect.suspend(() => {
      const rounds = roundsOf(known)
      return Effect.map(
        Effect.provideService(runner.enqueuePeriodic(enqueued), Database, database),
        () => void (enqueued = rounds)
      )
    }))
    const owed = yield* Mailbox.sliding<void>(1)
    const makeUp = Mailbox.take(owed).pipe(
      // Tried again until it succeeds.
      Effect.andThen(Effect.delay(Effect.ignore(Effect.retry(enqueueNew, untilBack)), "1 second")),
      Effect.andThen(queue.wake)
    )
    // Not one of the loops below, because leases must be renewed until the last attempt has ended.
    yield* supervised("job_leases", Effect.repeat(runner.renew, Schedule.spaced(runner.tendMillis)))
    yield* supervised("job_times", Effect.repeat(runner.tend, Schedule.spaced(runner.tendMillis)))
    const poll = Effect.suspend(() => Effect.delay(queue.wake, runner.pollMillis()))
    const loops = yield* Effect.all([
      supervised("job_wakes_heard", yield* runner.hearOthers),
      supervised("job_claims", Effect.forever(Effect.andThen(runner.pass, queue.awakened))),
      supervised("job_polls", Effect.forever(poll)),
      supervised("job_overdue", runner.awake.repeat(runner.interruptOverdue)),
      supervised("job_periodic", Effect.forever(makeUp))
    ])
    yield* Effect.acquireRelease(
      Effect.sync(() => queue.reservedSlots.offer(runner.reservedSlots)),
      () => Effect.sync(() => queue.reservedSlots.offer(undefined))
    )
    return {
      retune: Effect.fnUntraced(function*(tuning, next) {
        runner.retune(tuning, next)
        known = next
        yield* Effect.catch(
          enqueueNew,
          ({ message }) =>
            Effect.andThen(emit("job_periodic_delayed", { error: message }), Mailbox.offer(owed, undefined))
        )
        yield* queue.wake
        const { lease_seconds, max_concurrent, poll_interval_ms, retry_base_seconds, retry_max_seconds } = tuning
        yield* emit("job_runner_retuned", {
          poll_interval_ms,
          lease_seconds,
          retry_base_seconds,
          retry_max_seconds,
          max_concurrent
        })
      }),
      stop: yield* Effect.cached(Effect.gen(function*() {
        yield* Fiber.interruptAll(loops)
        const released = yield* runner.drain
        yield* emit("job_runner_stopped", { owner, jobs_released: released })
        return released
      }))
    }
  })
