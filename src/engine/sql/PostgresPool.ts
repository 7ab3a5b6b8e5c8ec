import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { Client, Pool, types as pgTypes } from "pg"
import type { ClientConfig, CustomTypesConfig, PoolClient, PoolConfig, QueryResult } from "pg"
import { sha256Octets } from "../../crypto/Digest.ts"
import type { Connection, Driver, Row } from "./Driver.ts"
import { SqlError } from "./SqlError.ts"

/*
 * Makes connections to PostgreSQL and lends them. Over the connections, it sends statements and listens for
 * notifications.
 */

/** `database.*` of the configuration. */
export interface PostgresOptions {
  readonly url: Redacted.Redacted
  readonly pool_max: number
  readonly acquire_timeout_ms: number
  /**
   * `transaction` means that a proxy gives each transaction a session of the server, so the service must leave no state
   * in a session.
   */
  readonly pooling?: "session" | "transaction"
}

// The server itself enforces these limits. This process cancels only reads that run beside the service, and keeps their
// connection until the cancellation is done (`PostgresCancel.ts`).
export const statementTimeoutMillis = 30_000
const lockTimeoutMillis = 10_000
// This process has a limit too, in case the server is frozen or behind a dead network path.
const lostAfterMillis = statementTimeoutMillis + 2000
const idleInTransactionMillis = 30_000

const bounds = {
  statement_timeout: statementTimeoutMillis,
  lock_timeout: lockTimeoutMillis,
  idle_in_transaction_session_timeout: idleInTransactionMillis
}

/**
 * The same limits for each transaction, if a proxy pools transactions: such a proxy accepts no parameters at the start
 * of a connection.
 */
export const boundsOfTransaction = Object.entries(bounds).map(([name, millis]) => `SET LOCAL ${name} = ${millis}`).join(
  "; "
)

const names = new Map<string, string>()
const nameOf = (text: string): string => {
  let name = names.get(text)
  if (name === undefined) {
    name = sha256Octets(text).toString("base64url").slice(0, 24)
    names.set(text, name)
  }
  return name
}

/**
 * A connection keeps the plans of its statements, and may make them while tables are small or empty. Then reading a
 * whole table seems to cost less than using its index. Compiling a statement costs more than it saves.
 */
const planning = "SET enable_seqscan = off; SET jit = off"

type Callback = (error: Error | undefined, result: QueryResult) => void

/** Clients whose statements have only the time limits of the server. */
const patient = new WeakSet<object>()
const longestTimerMillis = 2 ** 31 - 1

/**
 * Runs `self`, which uses only this client, without a time limit of this process. Building an index of a large table
 * takes minutes, and a migration lifts the server's limits for it. TCP detects a dead connection.
 */
export const patiently = <A, E, R>(client: PoolClient, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => patient.add(client)),
    () => self,
    () => Effect.sync(() => patient.delete(client))
  )

/** Closes a connection if the server has not enforced its own limit on statements. */
class BoundedClient extends Client {
  /** The query that is sent for a statement with values. */
  protected prepare(text: string, values: ReadonlyArray<unknown>): object {
    return { text, values }
  }

  // The overloads of `Client.query` cannot be repeated one by one. Every call that is not a text with values and a
  // callback passes through unchanged.
  override query(...args: Array<unknown>): never {
    const [text, values, callback] = args
    const forward = super.query as (...args: Array<unknown>) => never
    return typeof text === "string" && Array.isArray(values) && typeof callback === "function"
      ? forward.call(this, this.#asked(text, values), this.#endingWhenLost(callback as Callback))
      : forward.apply(this, args)
  }

  #asked(text: string, values: ReadonlyArray<unknown>): object | string {
    const asked = values.length > 0 ? this.prepare(text, values) : text
    if (!patient.has(this)) return asked
    return { ...(typeof asked === "string" ? { text } : asked), query_timeout: longestTimerMillis }
  }

  #endingWhenLost(callback: Callback): Callback {
    return (error, result) => {
      // Ending a client while it runs a statement destroys its socket. The pool then makes a new client.
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
 * Reads the URL and the files that it names. This happens once, so that a later connection does not fail because a file
 * was moved.
 */
export const readUrl = (options: PostgresOptions): Effect.Effect<ClientConfig, SqlError> =>
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
        keepAlive: true,
        // An idle connection that a firewall has forgotten is noticed within minutes instead of hours.
        keepAliveInitialDelayMillis: 30_000
      }
    },
    catch: (cause) => new SqlError({ cause, message: "the URL cannot be used" })
  })

/** A pool, and an option of its clients that is missing in the driver's types. */
interface PoolSettings extends PoolConfig {
  readonly pipeline: boolean
}

/** Makes a pool of at most `max` connections. */
export const makePool = (server: ClientConfig, max: number, keepsSession: boolean): Pool => {
  const settings: PoolSettings = {
    ...server,
    max,
    pipeline: true, // for statements that are sent ahead
    query_timeout: lostAfterMillis,
    ...(keepsSession ? bounds : {}),
    types,
    Client: keepsSession ? PreparingClient : BoundedClient
  }
  const pool = new Pool(settings)
  pool.on("error", () => {}) // an idle connection that dies is replaced at its next use
  // Sent ahead of the first statement.
  if (keepsSession) pool.on("connect", (client) => client.query(planning, () => {}))
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
    // The wait is limited, because a dead server does not confirm the end of a connection.
    (client) => Effect.ignore(Effect.timeoutOption(Effect.tryPromise(() => client.end()), 1000))
  )

/** Listens for notifications on its own connection. `counted` counts that connection while it is open. */
export const listen = (
  server: ClientConfig,
  counted: Effect.Effect<unknown, never, Scope.Scope>
): NonNullable<Driver["listen"]> =>
(channel, { heard, listening }) =>
  Effect.scoped(Effect.gen(function*() {
    const client = yield* Effect.tap(connectListener(server), counted)
    const over = yield* Deferred.make<never, SqlError>()
    const fail = (cause: unknown) => Deferred.doneUnsafe(over, Effect.fail(lost(cause)))
    client.on("notification", ({ payload }) => heard(payload ?? ""))
    client.on("error", fail).on("end", () => fail("ended"))
    yield* Effect.tryPromise({ try: () => client.query(`LISTEN ${channel}`), catch: lost })
    yield* listening
    return yield* Deferred.await(over)
  }))

const statementFailed = (cause: unknown) => new SqlError({ cause, message: "the statement failed" })

/**
 * Sends a statement. The callback gets the result or the failure. If the driver cannot send the statement, the callback
 * gets a defect.
 */
export const send = (
  client: PoolClient,
  text: string,
  params: ReadonlyArray<unknown>,
  heard: (result: Exit.Exit<QueryResult, SqlError>) => void
): void => {
  let isHeard = false
  // The driver calls back twice if it cannot write a parameter.
  const once = (result: Exit.Exit<QueryResult, SqlError>) => {
    if (isHeard) return
    isHeard = true
    heard(result)
  }
  try {
    client.query(
      text,
      [...params],
      (error: Error | null | undefined, result) =>
        once(error == null ? Exit.succeed(result) : Exit.fail(statementFailed(error)))
    )
  } catch (cause) {
    once(Exit.die(cause))
  }
}

/**
 * Returns the rows of a result. A text of several statements has several results, and counts as a statement without
 * rows.
 */
export const rowsOf = (result: QueryResult | ReadonlyArray<QueryResult>): ReadonlyArray<Row> =>
  "rows" in result ? result.rows : []

/** Makes a connection that waits for each of its statements. */
export const connectionOf = (client: PoolClient): Connection => {
  const executeRaw = (text: string, params: ReadonlyArray<unknown>) =>
    Effect.callback<QueryResult, SqlError>((resume) => send(client, text, params, resume))
  return { executeRaw, execute: (text, params) => Effect.map(executeRaw(text, params), rowsOf) }
}

/**
 * Makes a connection that can also send statements ahead. A statement that could not be sent counts as failed like any
 * other.
 */
export const pipelineOf = (client: PoolClient): Connection => ({
  ...connectionOf(client),
  ahead: (text, params, ended) =>
    send(client, text, params, (result) =>
      ended(
        Exit.isSuccess(result)
          ? undefined
          : Option.getOrElse(Cause.findErrorOption(result.cause), () => statementFailed(Cause.squash(result.cause)))
      ))
})

/** A client of the pool, with the function that gives it back. */
export interface Lent {
  readonly client: PoolClient
  readonly giveBack: () => void
}

/** Lends a client of the pool as soon as a client is free. Fails if no client becomes free in time. */
export const lend = (pool: Pool, heard: (result: Exit.Exit<Lent, SqlError>) => void): void =>
  pool.connect((error, client, release) => {
    if (client === undefined) return heard(Exit.fail(new SqlError({ cause: error, message: "no connection" })))
    let broken: Error | undefined
    const onError = (cause: Error) => void (broken = cause)
    client.on("error", onError)
    const giveBack = () => {
      client.off("error", onError)
      release(broken)
    }
    heard(Exit.succeed({ client, giveBack }))
  })
