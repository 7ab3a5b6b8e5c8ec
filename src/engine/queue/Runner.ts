import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Schedule from "effect/Schedule"
import { Entropy } from "../../crypto/Entropy.ts"
import { makeAwake } from "../Awake.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { Database } from "../sql/Database.ts"
import { emit, withinSpan } from "../telemetry/EngineLog.ts"
import { traced } from "../telemetry/Tracing.ts"
import { currentMillis, currentSeconds, lifeMillis } from "../Time.ts"
import { subjectText } from "./Ends.ts"
import type { Failure } from "./Failure.ts"
import { AttemptsUsedUp, DeadlinePassed, PayloadUnreadable, RowUnreadable } from "./Failure.ts"
import type { AnyHandler, Outcome, Round } from "./Handler.ts"
import { kindsOf, roundsOf } from "./Handler.ts"
import type { BackoffPolicy, Job } from "./Job.ts"
import { groupOf } from "./Job.ts"
import * as jobClaims from "./JobClaims.ts"
import * as jobTimes from "./JobTimes.ts"
import type { Holding } from "./Leases.ts"
import * as Leases from "./Leases.ts"
import { Queue } from "./Queue.ts"
import * as RemoteJobs from "./RemoteJobs.ts"
import * as ReservedSlots from "./ReservedSlots.ts"
import type { Ending } from "./Settlement.ts"
import * as Settlement from "./Settlement.ts"
import * as Slots from "./Slots.ts"
import * as Times from "./Times.ts"

/** `jobs.*` of the configuration. */
export interface Tuning extends BackoffPolicy {
  readonly poll_interval_ms: number
  readonly max_concurrent: number
  readonly lease_seconds: number
}

/** The options of a runner at its start. */
export interface RunnerOptions extends Tuning {
  /** The process's `workers.owner`. */
  readonly owner: string
  /** Whether another owner is known to be gone. If that is not known, its leases show it. */
  readonly isGone?: (owner: string) => boolean
}

const drainMillis = 5000
const giveUpMillis = 5000
const overdueCheckMillis = 100

interface Attempt extends Holding {
  /** The end of its budget, in milliseconds of the process's life. */
  readonly endsAt: number
  /** Its job's deadline, in epoch milliseconds. */
  readonly deadline: number
  readonly interrupt: Effect.Effect<void>
  ending: Ending
}

const settlementRetries = Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("1 second")])

/** The time between two checks of leases and times. */
const tendMillis = 1000

/** The parts of a runner. `Running.start` runs them; tests step through them. */
export const make = <R, F extends Failure>(given: RunnerOptions, known: ReadonlyArray<AnyHandler<R, F>>) =>
  Effect.gen(function*() {
    const { owner } = given
    let [options, handlers]: [Tuning, typeof known] = [given, known]
    const queue = yield* Queue
    const { kinds } = queue
    const database = yield* Database
    const attempts = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(attempts)<R | Database>()
    const forkTimer = yield* FiberSet.makeRuntime<never>()
    const running = new Set<Attempt>()
    const awake = makeAwake(overdueCheckMillis, () => running.size === 0)
    const slots = Slots.make(kinds.roomOf)
    let handedBack = 0
    let draining = false
    let tendedAt = Number.NEGATIVE_INFINITY
    const leases = Leases.make({ owner, isGone: given.isGone ?? (() => false), holdings: running })
    const step = yield* Times.makeStep
    const release = (slot: Pick<Job, "kind" | "share">) =>
      Effect.suspend(() => slots.release(slot) ? queue.wake : Effect.void)
    const settlement = Settlement.make({
      owner,
      ending: kinds,
      backoff: () => options,
      entropy: yield* Entropy,
      onHandedBack: Effect.sync(() => handedBack++),
      onEnded: (job) => queue.ends.tell(subjectText(job)),
      // Without this timer the poll would find the row, up to one interval late.
      onDueLater: (runAt) =>
        Effect.map(currentMillis, (now) => {
          const wait = runAt * 1000 - now
          if (wait < options.poll_interval_ms) forkTimer(Effect.delay(queue.wake, Math.max(wait, 0)))
        })
    })

    /** Repeats a failed settlement, with the same result, until `endsAt`. Then the end of the lease frees the row. */
    const insisting = <A>(settle: Effect.Effect<A, StorageFailed, R | Database>, endsAt: number) =>
      Effect.catch(settle, () =>
        Effect.retry(Effect.delay(settle, "50 millis"), {
          schedule: settlementRetries,
          while: () => Effect.map(lifeMillis, (life) => !draining && life < endsAt)
        }))

    /** Settles an attempt. If its result cannot be written, the job is tried again and the attempt is not counted. */
    const settleExit = (
      ended: Settlement.Ended<R, F>,
      exit: Exit.Exit<Outcome<R, F>, StorageFailed>,
      current: Attempt
    ) =>
      Effect.flatMap(lifeMillis, (life) =>
        Effect.catch(
          insisting(settlement.exited(ended, exit, current), Math.max(current.endsAt, life + giveUpMillis)),
          (error) =>
            Exit.isSuccess(exit) && exit.value._tag === "Done"
              ? Effect.andThen(exit.value.discarded ?? Effect.void, settlement.uncount(ended.job, current))
              : Effect.fail(error)
        ))

    /** One attempt, from the claimed row to its settlement. */
    const attempted = Effect.fnUntraced(
      function*(job: Job, startedAt: number, heldAt: number) {
        const known = handlers.find(({ kind }) => kind === job.kind)
        const prepared = known?.prepare(job)
        const ended = {
          job,
          startedAt,
          periodic: known?.periodic === true,
          abandon: prepared?.abandon ?? (() => Effect.void)
        }
        const deadline = job.deadline === undefined ? Number.POSITIVE_INFINITY : job.deadline * 1000
        const life = yield* lifeMillis
        if (job.unreadable !== undefined && !ended.periodic) {
          return yield* insisting(
            settlement.giveUp(ended, new RowUnreadable({ detail: job.unreadable })),
            life + giveUpMillis
          )
        }
        if (deadline <= startedAt) {
          yield* emit("job_deadline_passed", { kind: job.kind, job_id: job.id, attempts: job.attempts })
          return yield* insisting(settlement.giveUp(ended, new DeadlinePassed()), life + giveUpMillis)
        }
        // The attempts are used up although the job is not settled: the runner of the last attempt died.
        if (job.attempts > job.maxAttempts && !ended.periodic) {
          return yield* insisting(settlement.giveUp(ended, new AttemptsUsedUp()), life + giveUpMillis)
        }
        if (prepared === undefined) {
          return yield* insisting(settlement.giveUp(ended, new PayloadUnreadable()), life + giveUpMillis)
        }
        const fiber: Fiber.Fiber<Outcome<R, F>, StorageFailed> = yield* Effect.forkChild(prepared.run, {
          startImmediately: true
        })
        const current: Attempt = {
          job,
          heldAt,
          spentAt: life,
          endsAt: life + prepared.budgetMillis,
          deadline,
          interrupt: Effect.sync(() => fiber.interruptUnsafe()),
          ending: undefined
        }
        running.add(current)
        awake.wake()
        yield* Effect.ensuring(
          Effect.flatMap(Fiber.await(fiber), (exit) => settleExit(ended, exit, current)),
          Effect.sync(() => running.delete(current))
        )
      },
      Effect.catch(() => Effect.void), // already logged; when the lease ends, the row is ready again
      (self, job) => Effect.ensuring(self, release(job))
    )

    const attempt = (job: Job, heldAt: number) =>
      Effect.flatMap(currentMillis, (startedAt) =>
        withinSpan(
          { job_id: job.id, job_kind: job.kind, [kinds.groupName]: groupOf(job.share) || undefined },
          startedAt,
          traced(job.kind, () => ({ job_id: job.id, attempt: job.attempts }), attempted(job, startedAt, heldAt))
        ))

    // Not interruptible between the claim and the start of the attempts: a claimed row without an attempt would wait
    // for the end of its lease.
    const claim = Effect.uninterruptible(Effect.gen(function*() {
      const now = yield* currentSeconds
      const heldAt = yield* lifeMillis
      const claimant = { now, owner, until: now + Leases.leaseSeconds }
      yield* slots.fill(options.max_concurrent, kindsOf(handlers), now, {
        begin: (job) => void fork(attempt(job, heldAt)),
        claim: (of) => kinds.claim({ ...claimant, ...of }),
        heads: jobClaims.heads,
        claimThese: (ids) => jobClaims.claimThese({ ...claimant, ids })
      })
    }))

    const reach: Times.Reach = (kind) => {
      const known = handlers.find((one) => one.kind === kind)
      return known && { seconds: Math.max(options.retry_max_seconds, known.reachSeconds), periodic: known.periodic }
    }
    const correctTimes = Effect.suspend(() => Times.correct(reach, options.retry_max_seconds))

    const tend = Effect.gen(function*() {
      const life = yield* lifeMillis
      const since = life - tendedAt
      if (since >= 0 && since < tendMillis) return
      tendedAt = life
      const now = yield* currentSeconds
      if ((yield* step) < 0) {
        yield* jobTimes.bringForward(now, kindsOf(handlers.filter(({ periodic }) => periodic)))
        yield* queue.wake
      }
      if ((yield* leases.takeBack) + (yield* correctTimes) > 0) yield* queue.wake
    })

    const interruptEvery = (ending: NonNullable<Ending>, due: (attempt: Attempt) => boolean) =>
      Effect.forEach(running, (attempt) => {
        if (attempt.ending !== undefined || !due(attempt)) return Effect.void
        attempt.ending = ending
        return attempt.interrupt
      }, { discard: true })

    const others = RemoteJobs.make({
      isKnown: (kind) => handlers.some((one) => one.kind === kind),
      after: (millis, effect) => void forkTimer(Effect.delay(effect, millis))
    }, queue)

    return {
      hearOthers: others.hear,
      /**
       * Enqueues every periodic row that is not live, due at once, except those of `but`. Rows that depend on the
       * configuration are made due.
       */
      enqueuePeriodic: Effect.fnUntraced(function*(but: ReadonlyArray<Round> = []) {
        const known = new Set(but.map(({ key, kind }) => `${kind} ${key}`))
        for (const { key, kind, payload } of roundsOf(handlers)) {
          if (!known.has(`${kind} ${key}`)) yield* queue.enqueue({ kind, dedupKey: key, payload })
        }
        const now = yield* currentSeconds
        for (const { kind, looksAgain } of handlers) if (looksAgain) yield* jobTimes.lookAgain(now, kind)
      }),
      pollMillis: () => options.poll_interval_ms,
      /** Changes to other settings and handlers. Running attempts finish with those that they began with. */
      retune: (tuning: Tuning, next: typeof known) => {
        options = tuning
        handlers = next
      },
      tendMillis,
      /** For jobs that are enqueued here: they begin at the commit, if their turn has come. */
      reservedSlots: ReservedSlots.offerOf({
        owner,
        reserve: (kind, share) =>
          handlers.some((one) => one.kind === kind) && slots.reserve(options.max_concurrent, kind, share),
        release,
        isDraining: () => draining,
        // Does not begin at once, so that the request that enqueued the job is answered first.
        begin: (job, heldAt) => Effect.sync(() => void fork(Effect.andThen(Effect.yieldNow, attempt(job, heldAt)))),
        handBack: (job, spentAt) => settlement.handBack(job, { spentAt, ending: undefined }),
        database
      }),
      /**
       * Renews leases when it is time, and interrupts attempts that have lost their rows. It shares no loop with another statement:
       * one that hangs would hide that leases cannot be renewed.
       */
      renew: Effect.ignore(
        Effect.flatMap(leases.renew, (lost) => interruptEvery("lost", (attempt) => lost.includes(attempt)))
      ),
      /** Takes rows back from dead owners and corrects wrong future times; once a second at most. */
      tend: Effect.ignore(tend),
      /** Starts the due jobs. After a database error, the next pass tries again. */
      pass: Effect.suspend(() => {
        // The clock of the process that enqueued the job may be ahead.
        const first = others.haveTold() ? Effect.andThen(tend, correctTimes) : tend
        return Effect.andThen(Effect.ignore(first), Effect.ignore(claim))
      }),
      /** Interrupts attempts that are over budget or past their deadline, or whose rows other processes may hold by now. */
      interruptOverdue: Effect.gen(function*() {
        const life = yield* lifeMillis
        const now = yield* currentMillis
        yield* interruptEvery("timeout", ({ deadline, endsAt }) => endsAt <= life || deadline <= now)
        yield* interruptEvery("unheld", (attempt) => leases.isDoubtful(attempt, life))
      }),
      /** For `interruptOverdue`: awake while attempts run. */
      awake,
      /** Waits until no attempt is left. */
      idle: FiberSet.awaitEmpty(attempts),
      /** Gives running attempts five seconds, then hands the other rows back. Answers how many it handed back. */
      drain: Effect.gen(function*() {
        draining = true
        yield* Effect.timeoutOption(Effect.interruptible(FiberSet.awaitEmpty(attempts)), drainMillis)
        yield* interruptEvery("shutdown", () => true)
        yield* FiberSet.awaitEmpty(attempts)
        return handedBack
      })
    }
  })
