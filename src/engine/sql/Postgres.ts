import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { currentPeer } from "../net/FairSemaphore.ts"
import { emit, emitIn } from "../telemetry/EngineLog.ts"
import { Database, rollback } from "./Database.ts"
import type { Driver, Row } from "./Driver.ts"
import type { PostgresClient } from "./PostgresClient.ts"
import {
  codeOf,
  connectionOf,
  isStale,
  limitsOfTransaction,
  patiently,
  pipelineOf,
  rowsOf,
  send
} from "./PostgresClient.ts"
import { listen } from "./PostgresListen.ts"
import type { Lent } from "./PostgresPool.ts"
import { Pool } from "./PostgresPool.ts"
import { makeReading } from "./PostgresReading.ts"
import type { PostgresOptions } from "./PostgresServer.ts"
import { Connector, readUrl } from "./PostgresServer.ts"
import { askPosition, reaching, withStandby } from "./PostgresStandby.ts"
import { makeReaderSemaphore, readersOf } from "./ReaderSemaphore.ts"
import { causeOf, withRemedy } from "./Remedies.ts"
import { Late, SqlError } from "./SqlError.ts"
import { makeRecorder } from "./Unreadable.ts"
import { isVital } from "./Vital.ts"

const transientCodes = new Set(["40001", "40P01"])

const describe: Driver["describe"] = (error) => {
  const { cause } = error
  const code = codeOf(cause)
  const transient = transientCodes.has(code) || isStale(cause)
  // The reason why a request waited too long says more than the timeout itself.
  const root = cause instanceof Late && cause.cause !== undefined ? cause.cause : cause
  return {
    detail: cause instanceof Error ? withRemedy(code, cause.message || cause.name) : error.message,
    transient,
    cause: transient ? "conflict" : causeOf(codeOf(root), root instanceof Error ? root.message : "")
  }
}

const shareOf = (fiber: Fiber.Fiber<unknown, unknown>) => ({
  peer: fiber.getRef(currentPeer),
  isVital: fiber.getRef(isVital)
})

/** Waits for a connection in the share of the peer for which the fiber works. */
const reserving = (pool: Pool): Effect.Effect<Lent, SqlError> =>
  Effect.withFiber((fiber) => Effect.callback<Lent, SqlError>((resume) => pool.lend(resume, shareOf(fiber))))

const wasStale = (cause: Cause.Cause<SqlError>): boolean =>
  Option.exists(Cause.findErrorOption(cause), (error) => isStale(error.cause))

interface Parts {
  readonly connector: Connector
  /** Connects to the standby; `undefined` if there is none. */
  readonly standby: Pick<Parts, "connector" | "pool"> | undefined
  /** Connects for listening; `undefined` if this process may not listen. */
  readonly listener: Connector | undefined
  readonly pool: Pool
}

const make = (options: PostgresOptions, { connector, listener, pool, standby }: Parts) =>
  Effect.gen(function*() {
    let listening = 0
    const keepsSession = options.pooling !== "transaction"
    const told = <A, R>(self: Effect.Effect<A, SqlError, R>): Effect.Effect<A, SqlError, R> =>
      Effect.tapError(self, ({ cause }) =>
        cause instanceof Late ? emit("db_pool_timeout", { waited_ms: options.acquire_timeout_ms }) : Effect.void)
    const reserve = told(reserving(pool))
    // This connects once at startup, so that an unreachable server is reported now and not at the first statement.
    yield* Effect.uninterruptible(Effect.map(reserve, ({ giveBack }) =>
      giveBack()))
    const lent = <A, E, R>(use: (client: PostgresClient) => Effect.Effect<A, E, R>) =>
      // This is not interruptible, because an interrupted wait would leak the slot. The pool limits the wait.
      Effect.uninterruptible(Effect.flatMap(
        reserve,
        ({ client, giveBack }) =>
          Effect.ensuring(use(client), Effect.sync(giveBack))
      ))
    const exclusive: Driver["exclusive"] = (use) => lent((client) => patiently(client, use(connectionOf(client))))
    /** Runs a single statement. There is one wait for both the connection and the rows. */
    const single: Driver["single"] = ({ text }, params) =>
      Effect.uninterruptible(told(Effect.withFiber((fiber) =>
        Effect.callback<ReadonlyArray<Row>, SqlError>((resume) => {
          const ask = (isAgain: boolean): void =>
            pool.lend((found) => {
              if (Exit.isFailure(found)) return resume(Exit.failCause(found.cause))
              const { client, giveBack } = found.value
              send(client, text, params, (result) => {
                giveBack()
                const isRefused = !isAgain && Exit.isFailure(result) && wasStale(result.cause)
                return isRefused ? ask(true) : resume(Exit.map(result, rowsOf))
              })
            }, shareOf(fiber))
          ask(false)
        })
      )))
    const begin: Driver["begin"] = (connection) =>
      connection.executeRaw(
        keepsSession ? "BEGIN" : `BEGIN ISOLATION LEVEL READ COMMITTED; ${limitsOfTransaction(connector.limits)}`,
        []
      )
    // If the failure of a statement was swallowed, the transaction is aborted: COMMIT then returns ROLLBACK without an
    // error.
    const commit: Driver["commit"] = (connection) =>
      Effect.flatMap(connection.executeRaw("COMMIT", []), (result) =>
        typeof result === "object" && result !== null && "command" in result && result.command === "ROLLBACK"
          ? Effect.fail(new SqlError({ cause: result, message: "the transaction was aborted" }))
          : Effect.void)
    const transact: Driver["transact"] = (body) =>
      lent((client) => {
        // Some proxies that pool transactions do not support pipelining, which sends a statement before the last one is
        // answered.
        const connection = keepsSession ? pipelineOf(client) : connectionOf(client)
        return Effect.flatMap(Effect.andThen(begin(connection), body(connection)), (exit) =>
          Effect.as(
            exit._tag === "Success"
              ? Effect.tapError(commit(connection), () =>
                rollback(connection))
              : rollback(connection),
            exit
          ))
      })
    // With only one connection there is one reader, which uses that connection. Then there is no other connection over
    // which a read could be cancelled.
    const readers = makeReaderSemaphore(Math.max(1, readersOf(options.pool_max)), options.acquire_timeout_ms)
    const read = makeReading({ pool, reserve, connector, keepsSession, canGiveUp: options.pool_max > 1 })
    const aside: NonNullable<Driver["aside"]> = (patienceMillis, body) =>
      readers.take(read(patienceMillis, body))
    const primary = {
      dialect: "postgres" as const,
      exclusive,
      single,
      transact,
      aside,
      begin,
      commit,
      listen: listener === undefined
        ? undefined
        : listen(
          listener,
          pool,
          Effect.acquireRelease(
            Effect.sync(() =>
              listening++
            ),
            () => Effect.sync(() => listening--)
          )
        ),
      lost: undefined,
      keepsSession,
      describe,
      unreadable: makeRecorder(),
      isReadOnly: () => pool.isReadOnly(),
      connections: () => {
        const { busy, idle } = pool.counts()
        return { idle, busy: busy + listening }
      }
    }
    return Database.of(standby === undefined ? primary : withStandby(primary, standbyPartsOf(options, standby)))
  })

/** How long a read waits for a connection to the standby. After that the primary answers. */
const mostStandbyMillis = 2000
/** The connections to the standby: for two lists at once, for records and for cancelling a list. */
const standbyConnections = 4

const standbyPartsOf = (options: PostgresOptions, { connector, pool }: Pick<Parts, "connector" | "pool">) => ({
  read: makeReading({
    pool,
    reserve: reaching(reserving(pool)),
    connector,
    keepsSession: options.pooling !== "transaction",
    canGiveUp: true,
    asked: askPosition
  }),
  readers: makeReaderSemaphore(readersOf(standbyConnections), options.acquire_timeout_ms),
  connections: () => pool.counts(),
  mostLagSeconds: options.read_max_lag_seconds ?? 30,
  statementMillis: () => connector.limits.statement_timeout
})

const isSet = (url: Redacted.Redacted | undefined): url is Redacted.Redacted =>
  url !== undefined && Redacted.value(url) !== ""

/** Provides PostgreSQL through a bounded pool. Every wait for a slot ends after `acquire_timeout_ms`. */
export const layer = (options: PostgresOptions): Layer.Layer<Database, SqlError> =>
  Layer.unwrap(Effect.gen(function*() {
    const connector = new Connector(yield* readUrl(options))
    const pool = yield* Effect.acquireRelease(
      Effect.withFiber((fiber) =>
        Effect.succeed(
          new Pool({
            max: options.pool_max,
            acquireMillis: options.acquire_timeout_ms,
            connect: () => connector.connect(),
            onReadOnly: (isReadOnly) => emitIn(fiber, isReadOnly ? "db_read_only" : "db_read_only_ended", {})
          })
        )
      ),
      (made) => Effect.promise(() => made.end())
    )
    const { isServing, listen_url: listenUrl, pooling, read_url: readingUrl } = options
    const listener = isSet(listenUrl)
      ? new Connector(yield* readUrl({ ...options, url: listenUrl, pooling: "session" }))
      : pooling === "transaction"
      ? undefined
      : connector
    const standby = isServing === true && isSet(readingUrl) ? yield* standbyOf(options, readingUrl) : undefined
    return Layer.effect(Database, make(options, { connector, listener, pool, standby }))
  }))

const standbyOf = (options: PostgresOptions, url: Redacted.Redacted) =>
  Effect.gen(function*() {
    // No session at a standby takes the lock of `ServedLock.ts`, because only the primary has this lock.
    const connector = new Connector(yield* readUrl({ ...options, url, isServing: false, ofSeveral: "any" }))
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() =>
        new Pool({
          max: standbyConnections,
          acquireMillis: Math.min(options.acquire_timeout_ms, mostStandbyMillis),
          connect: () => connector.connect(),
          onlyReads: true
        })
      ),
      (made) => Effect.promise(() => made.end())
    )
    return { connector, pool }
  })
