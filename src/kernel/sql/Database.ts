import type { Connection } from "@effect/sql/SqlConnection"
import type { SqlError } from "@effect/sql/SqlError"
import { Context, Data, Effect, Exit } from "effect"
import { emit } from "../telemetry/EventLog.ts"
import { tracedWithin } from "../telemetry/Tracing.ts"
import type { Columns, Dialect, ValuesOf } from "./Column.ts"
import type { Compiled, Statement } from "./Statement.ts"
import { decode, encode } from "./Statement.ts"

/** A statement could not be carried out. `detail` has the engine's own words without the row's values. */
export class StorageFailed extends Data.TaggedError("StorageFailed")<{
  readonly statement: string
  readonly detail: string
  /** Deadlock or serialization failure: the whole transaction may be tried again. */
  readonly transient: boolean
}> {
  override get message(): string {
    return `${this.statement}: ${this.detail}`
  }
}

/** What is to happen once a transaction has committed, and once it has ended either way. */
interface Plans {
  readonly committed: Array<Effect.Effect<void>>
  readonly ended: Array<Effect.Effect<void>>
}

/** What statements run on. */
export type Executor = Pick<Connection, "execute">

/** The open transaction of a fiber, or the connection its reads have beside the others. */
class Transaction extends Context.Tag("acme/kernel/sql/Transaction")<
  Transaction,
  { readonly connection: Executor } & Plans
>() {}

/** Who hears notifications: each as it comes, and when it can be heard at all. */
export interface Ear {
  readonly heard: (payload: string) => void
  readonly listening: Effect.Effect<void>
}

/** Connections of a process to its database. */
export interface Connections {
  readonly idle: number
  readonly busy: number
}

/** What an engine brings: how a connection is had, how a transaction begins and how its errors read. */
export interface Driver {
  readonly dialect: Dialect
  /** Runs `use` with a connection nobody else uses meanwhile; neither the wait nor `use` is interrupted. */
  readonly exclusive: <A, E, R>(
    use: (connection: Connection) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SqlError, R>
  /** One statement outside a transaction. */
  readonly single: (
    statement: Compiled,
    params: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<unknown>, SqlError>
  /** Runs `body`, more than once if need be, in a transaction that commits when its exit is a success; answers then. */
  readonly transact: <A, E, R>(
    body: (connection: Connection) => Effect.Effect<Exit.Exit<A, E>, never, R>
  ) => Effect.Effect<Exit.Exit<A, E>, SqlError, R>
  /**
   * Runs reads on a connection of their own, off the event loop of this process; all of them together have so many
   * milliseconds, and then the engine gives up the one that is under way. Undefined where there is but one connection.
   */
  readonly aside:
    | (<A, E, R>(
      patienceMillis: number,
      body: (connection: Executor) => Effect.Effect<Exit.Exit<A, E>, never, R>
    ) => Effect.Effect<Exit.Exit<A, E>, SqlError, R>)
    | undefined
  readonly begin: (connection: Connection) => Effect.Effect<void, SqlError>
  readonly commit: (connection: Connection) => Effect.Effect<void, SqlError>
  /**
   * Holds a connection of its own that hears what other processes notify on a channel; fails when it is lost. Undefined
   * where there is no such thing.
   */
  readonly listen: ((channel: string, ear: Ear) => Effect.Effect<never, SqlError>) | undefined
  /** Completes with a sentence when the database is no longer what it was opened as; undefined where a server has it. */
  readonly lost: Effect.Effect<string> | undefined
  /** Whether a connection is the same session of the server from one transaction to the next. */
  readonly keepsSession: boolean
  readonly describe: (error: SqlError) => { readonly detail: string; readonly transient: boolean }
  /** Every connection of this process, as it is now. */
  readonly connections: () => Connections
}

/**
 * The one database. Statements run through {@link all}, {@link first} and {@link run}; they join the fiber's open
 * transaction when there is one. See `docs/architecture.md` for why transactions are not `sql.withTransaction`.
 */
export class Database extends Context.Tag("acme/kernel/sql/Database")<Database, Driver>() {}

const failed = (driver: Driver, statement: string) => (error: SqlError): Effect.Effect<never, StorageFailed> => {
  const { detail, transient } = driver.describe(error)
  return Effect.zipRight(
    afterTransaction(emit("db_statement_failed", { statement, error: detail })),
    Effect.fail(new StorageFailed({ statement, detail, transient }))
  )
}

const slowAfterMillis = 1000

/** Runs a statement and decodes every row. */
export const all = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<ReadonlyArray<ValuesOf<R>>, StorageFailed, Database> =>
  Effect.withFiberRuntime((fiber) => {
    const services = fiber.currentContext.unsafeMap
    const driver: Driver = services.get(Database.key)
    const transaction: Transaction["Type"] | undefined = services.get(Transaction.key)
    const compiled = statement.compiled[driver.dialect]
    const values = encode(statement, params, driver.dialect)
    const started = performance.now()
    return tracedWithin(
      statement.name,
      () => ({ "db.system": driver.dialect }),
      Effect.matchEffect(
        transaction === undefined
          ? driver.single(compiled, values)
          : transaction.connection.execute(compiled.text, values, undefined),
        {
          onFailure: failed(driver, statement.name),
          onSuccess: (raw) => {
            const result = raw.map((row) =>
              decode(statement, row as { readonly [column: string]: unknown }, driver.dialect)
            )
            const elapsed = performance.now() - started
            return elapsed < slowAfterMillis
              ? Effect.succeed(result)
              : Effect.as(
                emit("db_statement_slow", { statement: statement.name, elapsed_ms: Math.round(elapsed) }),
                result
              )
          }
        }
      )
    )
  })

/** The first row, or `undefined`. */
export const first = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<ValuesOf<R> | undefined, StorageFailed, Database> =>
  Effect.map(all(statement, params), (rows) => rows[0])

/** Runs a statement for its effect. */
export const run = <P extends Columns, R extends Columns>(
  statement: Statement<P, R>,
  params: ValuesOf<P>
): Effect.Effect<void, StorageFailed, Database> => Effect.asVoid(all(statement, params))

const transactionAttempts = 4

/**
 * Runs `body` in one transaction, or in the one already open. It is not interrupted, from the wait for a connection
 * (bounded by the driver) to the effects given to {@link afterCommit}: a client that hangs up meanwhile changes nothing.
 * A deadlock is retried as a whole, so the body must do nothing but statements: no network, script, hash, fork or caught
 * {@link StorageFailed} inside.
 */
export const transaction = <A, E, R>(body: Effect.Effect<A, E, R>): Effect.Effect<A, E | StorageFailed, R | Database> =>
  Effect.withFiberRuntime((fiber) => {
    const services = fiber.currentContext.unsafeMap
    if (services.has(Transaction.key)) return body
    const driver: Driver = services.get(Database.key)
    return Effect.uninterruptible(tracedWithin("transaction", () => ({}), attempts(driver, body, transactionAttempts)))
  })

const isTransient = (error: unknown) => error instanceof StorageFailed && error.transient

const asideMillis = 25_000

/**
 * Runs reads whose cost grows with the database: on a connection of their own where the engine has one for them, so that
 * they hold up neither requests nor jobs, and for so long at most. Within a transaction they are part of it. Nothing in
 * `body` may write.
 */
export const aside = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  patienceMillis: number = asideMillis
): Effect.Effect<A, E | StorageFailed, R | Database> =>
  Effect.withFiberRuntime((fiber) => {
    const services = fiber.currentContext.unsafeMap
    const driver: Driver = services.get(Database.key)
    const reading = driver.aside
    if (reading === undefined || services.has(Transaction.key)) return body
    return Effect.uninterruptible(attempt(driver, body, (run) => reading(patienceMillis, run)))
  })

/** Lets everything else that is due in this process have its turn: between the parts of what grows with the database. */
export const turn: Effect.Effect<void> = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

const attempts = <A, E, R>(
  driver: Driver,
  body: Effect.Effect<A, E, R>,
  left: number
): Effect.Effect<A, E | StorageFailed, R> =>
  Effect.catchAll(
    attempt(driver, body, driver.transact),
    (error) => left > 1 && isTransient(error) ? attempts(driver, body, left - 1) : Effect.fail(error)
  )

const attempt = <A, E, R>(
  driver: Driver,
  body: Effect.Effect<A, E, R>,
  within: (
    body: (connection: Executor) => Effect.Effect<Exit.Exit<A, E>, never, R>
  ) => Effect.Effect<Exit.Exit<A, E>, SqlError, R>
): Effect.Effect<A, E | StorageFailed, R> => {
  let plans: Plans = { committed: [], ended: [] }
  return Effect.matchEffect(
    within((connection) => {
      plans = { committed: [], ended: [] } // a body that runs again plans anew
      return Effect.exit(Effect.provideService(body, Transaction, { connection, ...plans }))
    }),
    {
      onFailure: (error) =>
        Effect.zipRight(Effect.all(plans.ended, { discard: true }), failed(driver, "transaction")(error)),
      // Once the connection is back, so that what follows can have it.
      onSuccess: (exit): Effect.Effect<A, E> => {
        const due = Exit.isSuccess(exit) ? plans.ended.concat(plans.committed) : plans.ended
        return due.length === 0 ? exit : Effect.zipRight(Effect.all(due, { discard: true }), exit)
      }
    }
  )
}

/** Undoes a transaction. A failing ROLLBACK means the connection is gone, and with it the transaction. */
export const rollback = (connection: Connection): Effect.Effect<void> =>
  Effect.ignore(connection.executeRaw("ROLLBACK", []))

const later = (plan: keyof Plans) => (effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.withFiberRuntime((fiber) => {
    const transaction: Transaction["Type"] | undefined = fiber.currentContext.unsafeMap.get(Transaction.key)
    if (transaction === undefined) return effect
    transaction[plan].push(effect)
    return Effect.void
  })

/** Runs `effect` once the open transaction has committed, at once when there is none. */
export const afterCommit = later("committed")

/**
 * Runs `effect` once the open transaction has ended either way, at once when there is none: for records of what went
 * wrong in a body, which may run more than once. The last run counts.
 */
export const afterTransaction = later("ended")
