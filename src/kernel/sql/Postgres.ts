import * as PgClient from "@effect/sql-pg/PgClient"
import * as SqlClient from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { Deferred, Effect, Layer, Redacted } from "effect"
import type { Scope } from "effect"
import { Client, Pool, types as pgTypes } from "pg"
import type { ClientConfig, CustomTypesConfig, QueryResult } from "pg"
import { sha256Octets } from "../../pki/Digest.ts"
import { emit } from "../telemetry/EventLog.ts"
import type { Connection, Driver } from "./Database.ts"
import { Database, rollback } from "./Database.ts"
import { makeGate, readersOf } from "./Gate.ts"
import { Late } from "./Late.ts"
import { withRemedy } from "./Remedies.ts"

/** `database.*` of the configuration. */
export interface PostgresOptions {
  readonly url: Redacted.Redacted
  readonly pool_max: number
  readonly acquire_timeout_ms: number
  /**
   * `transaction`: a proxy gives each transaction a session of the server, so the service must leave no state in a
   * session.
   */
  readonly pooling?: "session" | "transaction"
}

// The server itself keeps these bounds, because this process never cancels a statement: a cancel may hit the statement
// of a neighbour.
const statementTimeoutMillis = 30_000
const lockTimeoutMillis = 10_000
// This process has a bound too, for a server that is frozen or behind a dead network path.
const lostAfterMillis = statementTimeoutMillis + 2000
const idleInTransactionMillis = 30_000

const bounds = {
  statement_timeout: statementTimeoutMillis,
  lock_timeout: lockTimeoutMillis,
  idle_in_transaction_session_timeout: idleInTransactionMillis
}

/**
 * The same bounds for each transaction, if a proxy pools transactions: such a proxy accepts no parameters at the start
 * of a connection.
 */
const boundsOfTransaction = Object.entries(bounds).map(([name, millis]) => `SET LOCAL ${name} = ${millis}`).join("; ")

/**
 * For reads of listings and samples: one processor is enough for them. With parallel workers a single count would take
 * every processor from those who wait for a certificate, and to compile a statement costs more than it saves.
 */
const readModestly = "SET LOCAL max_parallel_workers_per_gather = 0; SET LOCAL jit = off"

const names = new Map<string, string>()
const nameOf = (text: string): string => {
  let name = names.get(text)
  if (name === undefined) {
    name = sha256Octets(text).toString("base64url").slice(0, 24)
    names.set(text, name)
  }
  return name
}

type Callback = (error: Error | undefined, result: QueryResult) => void

/** Gives up a connection if the server has not kept its own bound on statements. */
class BoundedClient extends Client {
  /** The query that is sent for a statement with values. */
  protected prepare(text: string, values: ReadonlyArray<unknown>): object {
    return { text, values }
  }

  // The overloads of `Client.query` cannot be repeated one by one. Every call without a text, values and a callback
  // passes through unchanged.
  override query(...args: Array<unknown>): never {
    const [text, values, callback] = args
    const forward = super.query as (...args: Array<unknown>) => never
    return typeof text === "string" && Array.isArray(values) && typeof callback === "function"
      ? forward.call(
        this,
        values.length > 0 ? this.prepare(text, values) : text,
        this.#endingWhenLost(callback as Callback)
      )
      : forward.apply(this, args)
  }

  #endingWhenLost(callback: Callback): Callback {
    return (error, result) => {
      // To end a client with a statement under way destroys its socket. The pool then replaces the client.
      if (error?.message === "Query read timeout") this.end().catch(() => {})
      callback(error, result)
    }
  }
}

/** Sends every parameterised statement under a name, so that the server plans it once per connection. */
class PreparingClient extends BoundedClient {
  protected override prepare(text: string, values: ReadonlyArray<unknown>): object {
    return { name: nameOf(text), text, values }
  }
}

const int8 = 20
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === int8 ? Number : pgTypes.getTypeParser(oid, format as "text")
}

/**
 * Reads the URL and the files that it names, once, so that a later connection does not fail because a file was moved.
 */
const readUrl = (options: PostgresOptions): Effect.Effect<ClientConfig, SqlError> =>
  Effect.try({
    try: () => {
      const connectionString = Redacted.value(options.url)
      const { database, host, password, port, ssl, user } = new Client({ connectionString })
      return {
        user,
        password,
        host,
        port,
        database,
        ssl,
        application_name: new URL(connectionString).searchParams.get("application_name") ?? undefined,
        connectionTimeoutMillis: options.acquire_timeout_ms,
        keepAlive: true
      }
    },
    catch: (cause) => new SqlError({ cause, message: "the URL cannot be used" })
  })

const makePool = (server: ClientConfig, max: number, keepsSession: boolean): Pool => {
  const pool = new Pool({
    ...server,
    max,
    query_timeout: lostAfterMillis,
    ...(keepsSession ? bounds : {}),
    types,
    Client: keepsSession ? PreparingClient : BoundedClient
  })
  pool.on("error", () => {}) // an idle connection that dies is replaced at its next use
  return pool
}

const lost = (cause: unknown) => new SqlError({ cause, message: "the listening connection was lost" })

const connectListener = (server: ClientConfig) =>
  Effect.acquireRelease(
    Effect.tryPromise({
      try: async () => {
        const client = new Client(server)
        client.on("error", () => {})
        await client.connect()
        return client
      },
      catch: lost
    }),
    // The wait is bounded, because a dead server does not answer the end of a connection.
    (client) => Effect.ignore(Effect.timeoutOption(Effect.tryPromise(() => client.end()), 1000))
  )

const listen = (
  server: ClientConfig,
  counted: Effect.Effect<unknown, never, Scope.Scope>
): NonNullable<Driver["listen"]> =>
(channel, { heard, listening }) =>
  Effect.scoped(Effect.gen(function*() {
    const client = yield* Effect.zipLeft(connectListener(server), counted)
    const over = yield* Deferred.make<never, SqlError>()
    const fail = (cause: unknown) => Deferred.unsafeDone(over, Effect.fail(lost(cause)))
    client.on("notification", ({ payload }) => heard(payload ?? ""))
    client.on("error", fail).on("end", () => fail("ended"))
    yield* Effect.tryPromise({ try: () => client.query(`LISTEN ${channel}`), catch: lost })
    yield* listening
    return yield* Deferred.await(over)
  }))

const transientCodes = new Set(["40001", "40P01"])
/** The code of a statement that a bound of the server has ended. */
const cancelled = "57014"

const codeOf = ({ cause }: SqlError): string =>
  typeof cause === "object" && cause !== null && "code" in cause ? String(cause.code) : ""

const describe: Driver["describe"] = (error) => {
  const { cause } = error
  const code = codeOf(error)
  return {
    detail: cause instanceof Error ? withRemedy(code, cause.message || cause.name) : error.message,
    transient: transientCodes.has(code)
  }
}

const make = (options: PostgresOptions, server: ClientConfig, pool: Pool) =>
  Effect.gen(function*() {
    let listening = 0
    const keepsSession = options.pooling !== "transaction"
    const sql = yield* SqlClient.SqlClient
    const reserve = Effect.catchAll(sql.reserve, (error) => {
      const { detail } = describe(error)
      if (!detail.includes("timeout exceeded when trying to connect")) return Effect.fail(error)
      const late = new SqlError({ cause: new Late(detail), message: error.message })
      return Effect.zipRight(emit("db_pool_timeout", { waited_ms: options.acquire_timeout_ms }), Effect.fail(late))
    })
    yield* Effect.scoped(reserve) // an unreachable server is reported now, not at the first statement
    // Not interruptible, because an interrupted wait would leak the slot. The pool bounds the wait.
    const exclusive: Driver["exclusive"] = (use) => Effect.uninterruptible(Effect.scoped(Effect.flatMap(reserve, use)))
    const begin: Driver["begin"] = (connection) =>
      connection.executeRaw(keepsSession ? "BEGIN" : `BEGIN; ${boundsOfTransaction}`, [])
    // If the failure of a statement was swallowed, the transaction is aborted: COMMIT then answers ROLLBACK without an
    // error.
    const commit: Driver["commit"] = (connection) =>
      Effect.flatMap(connection.executeRaw("COMMIT", []), (result) =>
        typeof result === "object" && result !== null && "command" in result && result.command === "ROLLBACK"
          ? Effect.fail(new SqlError({ cause: result, message: "the transaction was aborted" }))
          : Effect.void)
    const transact: Driver["transact"] = (body) =>
      exclusive((connection) =>
        Effect.flatMap(Effect.zipRight(begin(connection), body(connection)), (exit) =>
          Effect.as(
            exit._tag === "Success"
              ? Effect.tapError(commit(connection), () =>
                rollback(connection))
              : rollback(connection),
            exit
          ))
      )
    const beginReading = `BEGIN READ ONLY; ${readModestly}${keepsSession ? "" : `; ${boundsOfTransaction}`}`
    // Who has only one connection reads on it too.
    const readers = makeGate(Math.max(1, readersOf(options.pool_max)), options.acquire_timeout_ms)
    const aside: NonNullable<Driver["aside"]> = (patienceMillis, body) =>
      readers.hold(exclusive((connection) => {
        const end = performance.now() + patienceMillis
        const message = `not done within ${patienceMillis} ms`
        const late = new SqlError({ cause: new Late(message), message })
        const bound = (millis: number) =>
          `SET LOCAL statement_timeout = ${Math.min(Math.ceil(millis), statementTimeoutMillis)}`
        let told = patienceMillis
        // The server keeps the bound itself. It is told again when a tenth of what it knows has passed: to tell it before
        // each statement would double the round trips.
        const execute: Connection["execute"] = (text, params, transform) =>
          Effect.suspend(() => {
            const left = end - performance.now()
            if (left <= 0) {
              return late
            }
            const read = Effect.mapError(connection.execute(text, params, transform), (error) =>
              codeOf(error) === cancelled ? late : error)
            if (left > told * 0.9) {
              return read
            }
            told = left
            return Effect.zipRight(connection.executeRaw(bound(left), []), read)
          })
        return Effect.ensuring(
          Effect.zipRight(connection.executeRaw(`${beginReading}; ${bound(patienceMillis)}`, []), body({ execute })),
          rollback(connection) // there is nothing to keep
        )
      }))
    return Database.of({
      dialect: "postgres",
      exclusive,
      single: ({ text }, params) =>
        exclusive((connection) =>
          connection.execute(text, params, undefined)
        ),
      atOnce: undefined,
      transact,
      aside,
      begin,
      commit,
      listen: keepsSession
        ? listen(
          server,
          Effect.acquireRelease(
            Effect.sync(() => listening++),
            () => Effect.sync(() => listening--)
          )
        )
        : undefined,
      lost: undefined,
      keepsSession,
      describe,
      connections: () => ({ idle: pool.idleCount, busy: pool.totalCount - pool.idleCount + listening })
    })
  })

/** PostgreSQL through a bounded pool; every wait for a slot ends after `acquire_timeout_ms`. */
export const layer = (options: PostgresOptions): Layer.Layer<Database, SqlError> =>
  Layer.unwrapScoped(Effect.gen(function*() {
    const server = yield* readUrl(options)
    const pool = yield* Effect.acquireRelease(
      Effect.sync(() => makePool(server, options.pool_max, options.pooling !== "transaction")),
      (made) => Effect.promise(() => made.end())
    )
    return Layer.provide(
      Layer.scoped(Database, make(options, server, pool)),
      PgClient.layerFromPool({ acquire: Effect.succeed(pool) })
    )
  }))
