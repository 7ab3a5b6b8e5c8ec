import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Mailbox from "effect/Queue"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Entropy } from "../../crypto/Entropy.ts"
import type { Loops } from "../Loops.ts"
import { untilBack } from "../Retries.ts"
import type { StorageFailed } from "../sql/Database.ts"
import { Database } from "../sql/Database.ts"
import { vital } from "../sql/Vital.ts"
import { supervised } from "../Supervised.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, currentSeconds, lifeMillis } from "../Time.ts"
import * as Attempts from "./Attempts.ts"
import * as claims from "./Claims.ts"
import * as DueTimes from "./DueTimes.ts"
import type { Job } from "./Job.ts"
import * as jobRecords from "./JobRecords.ts"
import type { AnyHandler, Round } from "./Kind.ts"
import { kindsOf, roundsOf } from "./Kind.ts"
import * as Leases from "./Leases.ts"
import type { Failure } from "./Outcome.ts"
import { makeHearing, Queue } from "./Queue.ts"
import * as Settlement from "./Settlement.ts"
import type { BackoffPolicy } from "./Settlement.ts"
import * as Slots from "./Slots.ts"

/** `jobs.*` of the configuration. */
export interface Tuning extends BackoffPolicy {
  readonly poll_interval_ms: number
  readonly max_concurrent: number
  readonly lease_seconds: number
}

/** The options with which a runner starts. */
export interface RunnerOptions extends Tuning {
  /** The process's `workers.owner`. */
  readonly owner: string
  /** Returns whether another owner is known to be gone. If this is not known, the leases of that owner show it. */
  readonly isGone?: (owner: string) => boolean
}

const drainMillis = 5000

/** The time from a claim that found work until the next poll. It doubles with each claim that finds none. */
const firstFollowMillis = 50

/** The time between two checks of leases and due times. */
const tendMillis = 1000

/** The settings and handlers in force, which a reload changes, and whether the runner stops. */
interface InForce<R, F extends Failure> {
  isDraining: boolean
  tuning: Tuning
  /** The handlers by their kinds. */
  handlers: ReadonlyMap<string, AnyHandler<R, F>>
}

const byKind = <R, F extends Failure>(handlers: ReadonlyArray<AnyHandler<R, F>>): InForce<R, F>["handlers"] =>
  new Map(handlers.map((one) => [one.kind, one]))

/** Claims as many due rows as there are free slots, and begins them. */
const claiming = <R, F extends Failure>(
  inForce: InForce<R, F>,
  owner: string,
  slots: ReturnType<typeof Slots.make>,
  begin: (job: Job, heldAt: number) => void
) =>
  // This is not interruptible between the claim and the start of the attempts, because a claimed row without an attempt
  // would wait for the end of its lease.
  Effect.uninterruptible(Effect.gen(function*() {
    const { kinds } = yield* Queue
    const now = yield* currentSeconds
    const heldAt = yield* lifeMillis
    const claimant = { now, owner, until: now + Leases.leaseSeconds }
    yield* slots.fill(inForce.tuning.max_concurrent, [...inForce.handlers.keys()], now, {
      begin: (job) => begin(job, heldAt),
      claim: (of) => kinds.claim({ ...claimant, ...of }),
      due: (of) => claims.due({ ...of, now }),
      groups: claims.groups,
      heads: claims.heads,
      claimThese: (ids) => claims.claimThese({ ...claimant, ids })
    })
  }))

/**
 * Makes a claim that also determines the time until the next poll: short after a claim that found work, then twice as
 * long after each claim that found none.
 */
const following = <R>(claiming: (begun: () => void) => Effect.Effect<void, StorageFailed, R>) => {
  let begun = 0
  let millis = Number.POSITIVE_INFINITY
  const claimOnce = claiming(() => begun++)
  return {
    /** Claims and begins jobs. Returns whether it has begun any. After a database error, the next claim tries again. */
    claim: Effect.suspend(() => {
      const before = begun
      return Effect.map(Effect.ignore(claimOnce), () => {
        millis = begun > before ? firstFollowMillis : millis * 2
        return begun > before
      })
    }),
    followMillis: () => millis
  }
}

/** Takes rows back from dead owners and corrects wrong due times. */
const tending = <R, F extends Failure>(
  inForce: InForce<R, F>,
  leases: Pick<ReturnType<typeof Leases.make>, "takeBack">
) =>
  Effect.map(DueTimes.makeStep, (step) => {
    let tendedAt = Number.NEGATIVE_INFINITY
    const reach: DueTimes.Reach = (kind) => {
      const known = inForce.handlers.get(kind)
      return known &&
        { seconds: Math.max(inForce.tuning.retry_max_seconds, known.reachSeconds), periodic: known.periodic }
    }
    const correctTimes = Effect.suspend(() => DueTimes.correct(reach, inForce.tuning.retry_max_seconds))
    const tend = Effect.gen(function*() {
      const { wake } = yield* Queue
      const life = yield* lifeMillis
      const since = life - tendedAt
      if (since >= 0 && since < tendMillis) return
      tendedAt = life
      const now = yield* currentSeconds
      if ((yield* step) < 0) {
        yield* DueTimes.bringForward(now, kindsOf([...inForce.handlers.values()].filter(({ periodic }) => periodic)))
        yield* wake
      }
      if ((yield* leases.takeBack) + (yield* correctTimes) > 0) yield* wake
    })
    return { correctTimes, tend }
  })

/**
 * Enqueues every periodic row that is not live, due at once, except the rows in `but`. Rows that depend on the
 * configuration become due.
 */
const enqueuePeriodic = Effect.fnUntraced(function*<R, F extends Failure>(
  { handlers }: InForce<R, F>,
  but: ReadonlyArray<Round>
) {
  const queue = yield* Queue
  const known = new Set(but.map(({ key, kind }) => `${kind} ${key}`))
  for (const { key, kind, payload } of roundsOf([...handlers.values()])) {
    if (!known.has(`${kind} ${key}`)) yield* queue.enqueue({ kind, dedupKey: key, payload })
  }
  const now = yield* currentSeconds
  for (const { kind, looksAgain } of handlers.values()) if (looksAgain) yield* DueTimes.lookAgain(now, kind)
})

/** Makes the parts of a runner. {@link start} runs them; tests step through them. */
export const make = <R, F extends Failure>(options: RunnerOptions, handlers: ReadonlyArray<AnyHandler<R, F>>) =>
  Effect.gen(function*() {
    const { isGone = () => false, owner } = options
    const inForce: InForce<R, F> = { isDraining: false, tuning: options, handlers: byKind(handlers) }
    const queue = yield* Queue
    const database = yield* Database
    const withQueue = Effect.provideService(Queue, queue)
    const fibers = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(fibers)<R | Database>()
    const forkTimer = yield* FiberSet.makeRuntime<never>()
    let handedBack = 0
    const slots = Slots.make(queue.kinds.roomOf)
    const release = (slot: Pick<Job, "kind" | "share">) => slots.release(slot) ? queue.wake : Effect.void
    const settlement = Settlement.make({
      owner,
      backoff: () => inForce.tuning,
      entropy: yield* Entropy,
      onHandedBack: Effect.sync(() => handedBack++),
      onEnded: queue.ends.tell,
      // Without this timer, the poll would find the row up to one interval late.
      onDueLater: (runAt) =>
        Effect.map(currentMillis, (now) => {
          const wait = runAt * 1000 - now
          if (wait < inForce.tuning.poll_interval_ms) forkTimer(Effect.delay(queue.wake, Math.max(wait, 0)))
        })
    })
    const attempts = Attempts.make<R, F>({
      inForce,
      settlement,
      release,
      ends: queue.ends,
      groupName: queue.kinds.groupName
    })
    const leases = Leases.make({ owner, isGone, holdings: attempts.running })
    const { correctTimes, tend } = yield* tending(inForce, leases)
    const { claim, followMillis } = following((begun) =>
      claiming(inForce, owner, slots, (job, heldAt) => {
        begun()
        void fork(attempts.run(job, heldAt))
      })
    )
    const others = makeHearing({
      isKnown: (kind) => kind !== undefined && inForce.handlers.has(kind),
      after: (millis, effect) => void forkTimer(Effect.delay(effect, millis))
    }, queue)

    return {
      hearOthers: others.hear,
      /** Enqueues the periodic rows of the handlers in force ({@link enqueuePeriodic}). */
      enqueuePeriodic: (but: ReadonlyArray<Round> = []) => withQueue(enqueuePeriodic(inForce, but)),
      /**
       * Returns the time until the next poll. If this process hears no announcements, it soon polls again after a claim
       * that found work.
       */
      pollMillis: () => {
        const { poll_interval_ms } = inForce.tuning
        return others.isHearing() ? poll_interval_ms : Math.min(poll_interval_ms, followMillis())
      },
      /**
       * Changes to other settings and handlers. Running attempts keep the settings and handlers with which they began.
       */
      retune: (tuning: Tuning, next: ReadonlyArray<AnyHandler<R, F>>) => {
        inForce.tuning = tuning
        inForce.handlers = byKind(next)
      },
      /** The slots for jobs that this process enqueues: such a job begins at the commit if its turn has come. */
      reservedSlots: Slots.offerOf({
        owner,
        inForce,
        reserve: (kind, share) =>
          inForce.handlers.has(kind) && slots.reserve(inForce.tuning.max_concurrent, kind, share),
        release,
        // The attempt does not begin at once, so that the request that enqueued the job is answered first.
        begin: (job, heldAt) => void fork(Effect.andThen(Effect.yieldNow, attempts.run(job, heldAt))),
        handBack: (job, spentAt) => settlement.handBack(job, { spentAt, ending: undefined }),
        database
      }),
      /**
       * Renews leases when it is time, and interrupts attempts that have lost their rows. This effect does not share
       * its loop with other statements, because a statement that hangs would hide that leases cannot be renewed.
       */
      renew: Effect.ignore(
        Effect.flatMap(
          vital(leases.renew),
          (lost) => attempts.interruptEvery("lost", (attempt) => lost.includes(attempt))
        )
      ),
      /** Takes rows back from dead owners and corrects wrong future times, at most once a second. */
      tend: withQueue(Effect.ignore(tend)),
      /** Starts the due jobs. */
      pass: withQueue(Effect.suspend(() => {
        const claimed = Effect.andThen(Effect.ignore(tend), claim)
        if (!others.haveTold()) return Effect.asVoid(claimed)
        // If a job was announced and none is due, the clock of the process that enqueued it may be ahead.
        const moved = Effect.orElseSucceed(correctTimes, () => 0)
        return Effect.flatMap(
          claimed,
          (hasBegun) =>
            hasBegun ? Effect.void : Effect.flatMap(moved, (count) => count > 0 ? Effect.asVoid(claim) : Effect.void)
        )
      })),
      /**
       * Interrupts attempts that are over budget or past their deadline, or whose rows may belong to other processes.
       */
      interruptOverdue: attempts.interruptOverdue(leases.isDoubtful),
      /** Repeats `interruptOverdue` while attempts run. */
      awake: attempts.awake,
      /** Waits until no attempt is left. */
      idle: FiberSet.awaitEmpty(fibers),
      /** Gives running attempts five seconds, then hands the remaining rows back. Returns how many it handed back. */
      drain: Effect.gen(function*() {
        inForce.isDraining = true
        yield* Effect.timeoutOption(Effect.interruptible(FiberSet.awaitEmpty(fibers)), drainMillis)
        yield* attempts.interruptEvery("shutdown", () => true)
        yield* FiberSet.awaitEmpty(fibers)
        return handedBack
      })
    }
  })

/** A running runner. */
export interface Running<R, F extends Failure = Failure> {
  /**
   * Changes to other settings and handlers. Running attempts keep the settings and handlers with which they began.
   * Periodic kinds that were not known before are enqueued as soon as the database is available.
   */
  readonly retune: (tuning: Tuning, handlers: ReadonlyArray<AnyHandler<R, F>>) => Effect.Effect<void>
  /**
   * Claims no more jobs, gives running attempts five seconds, and hands the remaining jobs back without counting the
   * attempt. Returns how many it handed back.
   */
  readonly stop: Effect.Effect<number>
}

/**
 * Makes the part of a runner that enqueues the periodic rows that the handlers in force have and the previous handlers
 * did not have. After a failure it tries again.
 */
const periodicRows = Effect.fnUntraced(function*(
  enqueue: (but: ReadonlyArray<Round>) => Effect.Effect<void, StorageFailed>,
  first: ReadonlyArray<Round>
) {
  const { wake } = yield* Queue
  const turns = yield* Semaphore.make(1)
  const owed = yield* Mailbox.sliding<void>(1)
  let [wanted, enqueued] = [first, first]
  const enqueueNew = turns.withPermits(1)(Effect.suspend(() => {
    const rounds = wanted
    return Effect.map(enqueue(enqueued), () => void (enqueued = rounds))
  }))
  return {
    /** Enqueues the rows of the handlers that are now in force. If that fails, `makeUp` tries again. */
    change: (rounds: ReadonlyArray<Round>) =>
      Effect.suspend(() => {
        wanted = rounds
        return Effect.catch(
          enqueueNew,
          ({ message }) =>
            Effect.andThen(emit("job_periodic_delayed", { error: message }), Mailbox.offer(owed, undefined))
        )
      }),
    /** Waits until a change has failed, and tries again until it succeeds. */
    makeUp: Mailbox.take(owed).pipe(
      Effect.andThen(Effect.delay(Effect.ignore(Effect.retry(enqueueNew, untilBack)), "1 second")),
      Effect.andThen(wake)
    )
  }
})

/**
 * Starts a runner. It claims due jobs of the given handlers' kinds and runs them, as many at once as each kind has
 * slots. A handler that fails or panics, or an unavailable database, ends an attempt, but never the runner.
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
    // Unknown kinds are left for a worker that knows them: an older or a newer version may use the same database
    // (docs/contribute/decisions/compatibility.md, "Neighbours").
    for (const unknown of yield* jobRecords.unknownKinds(kindsOf(handlers))) {
      yield* emit("job_kind_unknown", unknown)
    }
    const periodic = yield* periodicRows(
      (but) => Effect.provideService(runner.enqueuePeriodic(but), Database, database),
      roundsOf(handlers)
    )
    // This is not one of the loops below, because leases must be renewed until the last attempt has ended.
    yield* supervised("job_leases", Effect.repeat(runner.renew, Schedule.spaced(tendMillis)))
    yield* supervised("job_times", Effect.repeat(runner.tend, Schedule.spaced(tendMillis)))
    const poll = Effect.suspend(() => Effect.delay(queue.wake, runner.pollMillis()))
    const loops = yield* Effect.all([
      supervised("job_wakes_heard", yield* runner.hearOthers),
      supervised("job_claims", Effect.forever(Effect.andThen(runner.pass, queue.awakened))),
      supervised("job_polls", Effect.forever(poll)),
      supervised("job_overdue", runner.awake.repeat(runner.interruptOverdue)),
      supervised("job_periodic", Effect.forever(periodic.makeUp))
    ])
    yield* Effect.acquireRelease(
      Effect.sync(() => queue.reservedSlots.offer(runner.reservedSlots)),
      () => Effect.sync(() => queue.reservedSlots.offer(undefined))
    )
    return {
      retune: Effect.fnUntraced(function*(tuning, next) {
        runner.retune(tuning, next)
        yield* periodic.change(roundsOf(next))
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
