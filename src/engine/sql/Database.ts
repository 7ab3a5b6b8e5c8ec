import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { emit } from "../telemetry/EngineLog.ts"
import { count } from "../telemetry/EngineSeries.ts"
import { isTracedWithin, traced } from "../telemetry/Tracing.ts"
import { neededSoFar } from "./CommitSync.ts"
import type { Connection, Driver, Executor } from "./Driver.ts"
import type { SqlError } from "./SqlError.ts"
import { Late } from "./SqlError.ts"

/**
 * A statement failed, or a row of its result cannot be read. `detail` is the engine's own message, or says which row
 * and which column cannot be read, without any value of the row.
 */
export class StorageFailed extends Data.TaggedError("StorageFailed")<{
  readonly statement: string
  readonly detail: string
  /** Whether this was a deadlock or a serialization failure, after which the whole transaction may be tried again. */
  readonly transient: boolean
  /** Whether the statement was not done in time, or no connection became free in time. */
  readonly isLate?: boolean
  /** Whether a row of the result cannot be read. Trying again does not help. */
  readonly isUnreadable?: boolean
}> {
  override get message(): string {
    return `${this.statement}: ${this.detail}`
  }
}

/**
 * The database of the service. Statements run through {@link all}, {@link first} and {@link run}. If the fiber has an
 * open transaction, they become a part of it. `docs/contribute/architecture.md` says why transactions are not
 * `sql.withTransaction`.
 */
export class Database extends Context.Service<Database, Driver>()("acme/engine/sql/Database") {}

/** Returns the database of a fiber whose effect requires a database. */
export const driverOf = (fiber: Fiber.Fiber<unknown, unknown>): Driver => Context.getUnsafe(fiber.context, Database)

/** Returns whether the database refuses writes, as far as this process has noticed lately. */
export const isReadOnly: Effect.Effect<boolean, never, Database> = Effect.withFiber((fiber) =>
  Effect.succeed(driverOf(fiber).isReadOnly())
)

/**
 * The effects that run after the commit (`committed`), after any end (`ended`), and after a run of the body that has no
 * effect (`undone`). Also the state of the statements that were sent ahead (`Ahead.ts`).
 */
export interface Plans {
  readonly committed: Array<Effect.Effect<void>>
  readonly ended: Array<Effect.Effect<void>>
  readonly undone: Array<Effect.Effect<void>>
  /** The first of the statements sent ahead that has failed. All later statements fail because of it. */
  failure: { readonly statement: string; readonly error: SqlError } | undefined
  /** The number of statements that were sent ahead and have not been answered yet. */
  inFlight: number
  /** The functions that are called when no statement is in flight any more. */
  readonly waiting: Array<() => void>
  /**
   * The time of the answer to the last statement that was sent ahead. The next statement did not begin before that
   * time.
   */
  answered: number
}

/** A transaction, or the separate connection of {@link aside}. */
export interface Transaction {
  readonly connection: Executor
  readonly plans: Plans
}

/**
 * The open transaction of a fiber. It is a reference and not a service, because providing a service costs seventeen
 * operations, and every write has a transaction.
 */
export const openTransaction = Context.Reference<Transaction | undefined>(
  "acme/engine/sql/Database/openTransaction",
  { defaultValue: () => undefined }
)

/** A statement that takes this number of milliseconds, or more, is reported. */
export const slowAfterMillis = 1000

/** Reports a slow statement. */
export const slow = (statement: string, elapsed: number): Effect.Effect<void> =>
  emit("db_statement_slow", { statement, elapsed_ms: Math.round(elapsed) })

/**
 * Logs that a statement failed, and fails with the name of the statement. If an earlier statement that was sent ahead
 * in the transaction has failed, the failure has the name of the earlier statement.
 */
export const failed = (
  driver: Driver,
  name: string,
  last: SqlError,
  plans?: Plans
): Effect.Effect<never, StorageFailed> => {
  const { error, statement } = plans?.failure ?? { error: last, statement: name }
  const { cause, detail, transient } = driver.describe(error)
  const isLate = error.cause instanceof Late
  return Effect.andThen(
    afterTransaction(Effect.andThen(
      count("acme_svc_database_failures_total", { cause: isLate && cause === "other" ? "late" : cause }),
      emit("db_statement_failed", { statement, error: detail })
    )),
    Effect.fail(new StorageFailed({ statement, detail, transient, isLate }))
  )
}

const transactionAttempts = 4

/**
 * Runs `body` in one transaction, or in the transaction that is already open. From the wait for a connection (which the
 * driver limits) until the effects given to {@link afterCommit} have run, this cannot be interrupted. So a client that
 * disconnects in the meantime changes nothing. After a deadlock the whole body runs again. So the body may only run
 * statements: no network, script, hash, fork or caught {@link StorageFailed} inside.
 */
export const transaction = <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E | StorageFailed, R | Database> =>
  Effect.withFiber((fiber) => {
    if (fiber.getRef(openTransaction) !== undefined) return body
    const whole = attempts(driverOf(fiber), body, transactionAttempts)
    return Effect.uninterruptible(isTracedWithin(fiber) ? traced("transaction", () => ({}), whole) : whole)
  })

const isTransient = (error: unknown) => error instanceof StorageFailed && error.transient

const asideMillis = 25_000

/**
 * Runs reads whose cost grows with the database, for at most `patienceMillis`. If the engine allows it, they have a
 * connection of their own, so that they delay neither requests nor jobs. Within a transaction they are a part of the
 * transaction. Nothing in `body` may write. If the fiber is interrupted because the result is no longer needed, waiting
 * reads end, and the engine cancels the read that is running.
 */
export const aside = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  patienceMillis: number = asideMillis
): Effect.Effect<A, E | StorageFailed, R | Database> =>
  Effect.withFiber((fiber) => {
    const driver = driverOf(fiber)
    const reading = driver.aside
    if (reading === undefined || fiber.getRef(openTransaction) !== undefined) return body
    return attempt(driver, body, (run) => reading(patienceMillis, run))
  })

/** Runs the statements of `body` over a connection whose transaction the caller has begun and will end. */
export const over = <A, E, R>(connection: Executor, body: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(body, openTransaction, { connection, plans: noPlans() })

const attempts = <A, E, R>(
  driver: Driver,
  body: Effect.Effect<A, E, R>,
  left: number
): Effect.Effect<A, E | StorageFailed, R> =>
  Effect.catch(
    attempt(driver, body, driver.transact),
    (error) => left > 1 && isTransient(error) ? attempts(driver, body, left - 1) : Effect.fail(error)
  )

const noPlans = (): Plans => ({
  committed: [],
  ended: [],
  undone: [],
  failure: undefined,
  inFlight: 0,
  waiting: [],
  answered: 0
})

const attempt = <A, E, R>(
  driver: Driver,
  body: Effect.Effect<A, E, R>,
  within: (
    body: (connection: Executor) => Effect.Effect<Exit.Exit<A, E | StorageFailed>, never, R>
  ) => Effect.Effect<Exit.Exit<A, E | StorageFailed>, SqlError, R>
): Effect.Effect<A, E | StorageFailed, R> => {
  let plans = noPlans()
  const undo = (error: SqlError) =>
    Effect.andThen(
      Effect.all(plans.ended.concat(plans.undone), { discard: true }),
      failed(driver, "transaction", error, plans)
    )
  return Effect.matchEffect(
    within((connection) => {
      const { undone } = plans
      const mine = plans = noPlans() // a body that runs again registers its effects anew
      const run = Effect.flatMap(
        Effect.provideService(Effect.exit(body), openTransaction, { connection, plans: mine }),
        (exit: Exit.Exit<A, E | StorageFailed>): Effect.Effect<Exit.Exit<A, E | StorageFailed>> =>
          // The body may have succeeded although a statement could not even be sent. The engine does not know about
          // this statement, and would commit.
          mine.failure === undefined || Exit.isFailure(exit)
            ? Effect.succeed(exit)
            : Effect.exit(failed(driver, "transaction", mine.failure.error, mine))
      )
      return undone.length === 0 ? run : Effect.andThen(Effect.all(undone, { discard: true }), run)
    }),
    {
      onFailure: undo,
      // By now the connection has been given back, so these effects can use it.
      onSuccess: (exit): Effect.Effect<A, E | StorageFailed> => {
        if (plans.failure !== undefined && Exit.isSuccess(exit)) return undo(plans.failure.error)
        const due = plans.ended.concat(Exit.isSuccess(exit) ? plans.committed : plans.undone)
        if (due.length === 0) return exit
        const done = Effect.andThen(due.reduce((before, next) => Effect.andThen(before, next)), exit)
        const { commits } = driver
        if (commits === undefined) return done
        return Effect.withFiber((fiber) => {
          const needed = fiber.getRef(neededSoFar)
          return needed === undefined
            ? done
            : Effect.matchEffect(commits.upTo(needed.commit), { onFailure: undo, onSuccess: () => done })
        })
      }
    }
  )
}

/** Rolls a transaction back. If ROLLBACK fails, the connection is lost, and with it the transaction. */
export const rollback = (connection: Connection): Effect.Effect<void> =>
  Effect.ignore(connection.executeRaw("ROLLBACK", []))

const later = (plan: "committed" | "ended") => (effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const transaction = fiber.getRef(openTransaction)
    if (transaction === undefined) return effect
    transaction.plans[plan].push(effect)
    return Effect.void
  })

/** Runs `effect` after the open transaction has committed. If no transaction is open, runs it at once. */
export const afterCommit = later("committed")

/**
 * Runs `effect` after the open transaction has committed or was rolled back. If no transaction is open, runs it at
 * once. This is for logging the failures in a body. A body may run more than once; only the effects of its last run
 * count.
 */
export const afterTransaction = later("ended")

/**
 * Runs `effect` if this run of the transaction's body has no effect: after a rollback, and before the body runs again.
 * This is for giving back resources that the body has taken in this process. Returns `false` if no transaction is open.
 */
export const ifUndone = (effect: Effect.Effect<void>): Effect.Effect<boolean> =>
  Effect.withFiber((fiber) => {
    const transaction = fiber.getRef(openTransaction)
    transaction?.plans.undone.push(effect)
    return Effect.succeed(transaction !== undefined)
  })
