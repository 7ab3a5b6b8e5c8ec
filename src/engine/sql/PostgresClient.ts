import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { Client, DatabaseError, types as pgTypes } from "pg"
import type { ClientConfig, CustomTypesConfig, QueryResult } from "pg"
import { sha256Octets } from "../../crypto/Digest.ts"
import type { Connection, Row } from "./Driver.ts"
import { SqlError } from "./SqlError.ts"

/* A connection to PostgreSQL, and the statements that are sent over it. */

/**
 * Time limits in milliseconds, under the names that the server uses. The server enforces them. This process itself
 * cancels only reads that run aside, and keeps their connection until the cancellation is done (`PostgresCancel.ts`).
 */
export interface Limits {
  readonly statement_timeout: number
  readonly lock_timeout: number
  readonly idle_in_transaction_session_timeout: number
}

// How long this process waits beyond the limit of the server, which may be frozen or behind a dead network path.
const lostMillis = 2000

/**
 * Returns the statements that set the limits of a transaction. They are for a proxy that pools transactions, because
 * such a proxy accepts no parameters when a connection opens.
 */
export const limitsOfTransaction = (limits: Limits): string =>
  Object.entries(limits).map(([name, millis]) => `SET LOCAL ${name} = ${millis}`).join("; ")

/** Returns the error code of a failure, from PostgreSQL or from the system. */
export const codeOf = (failure: unknown): string =>
  typeof failure === "object" && failure !== null && "code" in failure ? String(failure.code) : ""

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

/** The limits of this process, in milliseconds, for clients whose statements temporarily have a different limit. */
const timeLimits = new WeakMap<object, number>()
const longestTimerMillis = 2 ** 31 - 1

/**
 * Runs `self`, which uses only this client. This process waits `millis` for each statement. After that it ends the
 * connection, because the server does not answer.
 */
export const withTimeLimit = <A, E, R>(
  client: PostgresClient,
  millis: number,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => timeLimits.set(client, millis)),
    () => self,
    () => Effect.sync(() => timeLimits.delete(client))
  )

/**
 * Runs `self`, which uses only this client, without a time limit of this process. Building an index of a large table
 * takes minutes, and a migration lifts the server's limits for it. TCP detects a dead connection.
 */
export const patiently = <A, E, R>(client: PostgresClient, self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  withTimeLimit(client, longestTimerMillis, self)

const lateMessage = "Query read timeout"

/** Returns whether a statement failed because the server did not answer within the time limit of this process. */
export const isUnanswered = (failure: unknown): boolean => failure instanceof Error && failure.message === lateMessage

/**
 * Returns whether a statement was refused because the session does not have it any more, or has it for a table whose
 * columns have changed since. The statement was not run, and the session would refuse it each time.
 */
export const isStale = (failure: unknown): boolean =>
  codeOf(failure) === "26000" ||
  // PostgreSQL translates its message and uses the code 0A000 for other failures too, so its function tells.
  failure instanceof DatabaseError && failure.code === "0A000" && failure.routine === "RevalidateCachedQuery"

/** A connection that records when it is over. It ends if the server has not enforced its own limit on statements. */
export class PostgresClient extends Client {
  /** The id of the server's process, as the server or a proxy before it has told it. The types of `pg` lack it. */
  declare readonly processID: number | null
  /** Whether nothing can be sent any more. */
  isOver = false
  /** Whether the server refused writes when the connection was made. */
  isReadOnly = false
  /** After how many idle milliseconds the connection must not be lent any more. */
  idleMillis = Infinity
  /** Called with each failure of a statement or of the connection itself. */
  judge: ((failure: unknown) => void) | undefined

  constructor(config: ClientConfig) {
    super(config)
    this.on("error", (failure) => this.#over(failure)).on("end", () => this.#over(undefined))
  }

  #over(failure: unknown): void {
    this.isOver = true
    this.judge?.(failure)
  }

  /** Returns the query that is sent for a statement with values. */
  protected prepare(text: string, values: ReadonlyArray<unknown>): object {
    return { text, values }
  }

  // The overloads of `Client` cannot be repeated one by one. Every call that is not a text with values and a callback
  // passes through unchanged.
  override query(...args: Array<unknown>): never {
    const [text, values, callback] = args
    const forward = super.query as (...args: Array<unknown>) => never
    return typeof text === "string" && Array.isArray(values) && typeof callback === "function"
      ? forward.call(this, this.#asked(text, values), this.#judged(callback as Callback))
      : forward.apply(this, args)
  }

  override end(...args: Array<unknown>): never {
    this.isOver = true
    return (super.end as (...args: Array<unknown>) => never).apply(this, args)
  }

  #asked(text: string, values: ReadonlyArray<unknown>): object | string {
    const asked = values.length > 0 ? this.prepare(text, values) : text
    const limit = timeLimits.get(this)
    return limit === undefined
      ? asked
      : { ...(typeof asked === "string" ? { text } : asked), query_timeout: limit }
  }

  #judged(callback: Callback): Callback {
    return (error, result) => {
      if (error != null) {
        // Ending a client while it runs a statement destroys its socket.
        if (isUnanswered(error)) void (this.end() as Promise<void>).catch(() => {})
        this.judge?.(error)
      }
      callback(error, result)
    }
  }
}

/** Sends every parameterised statement under a name, so that the server plans it once per connection. */
class PreparingClient extends PostgresClient {
  protected override prepare(text: string, values: ReadonlyArray<unknown>): object {
    return { name: nameOf(text), text, values }
  }
}

const int8 = 20
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    oid === int8 ? Number : pgTypes.getTypeParser(oid, format as "text")
}

/** A setting of a client that is missing in the driver's types. */
interface ClientSettings extends ClientConfig {
  readonly pipeline: boolean
}

/** Makes a connection for statements. It is not open yet. If it keeps its session, it sets the limits when it opens. */
export const makeClient = (server: ClientConfig, keepsSession: boolean, limits?: Limits): PostgresClient => {
  const settings: ClientSettings = {
    ...server,
    pipeline: true, // for statements that are sent ahead
    query_timeout: limits === undefined ? undefined : limits.statement_timeout + lostMillis,
    ...(keepsSession ? limits : undefined),
    types
  }
  return keepsSession ? new PreparingClient(settings) : new PostgresClient(settings)
}

const statementFailed = (cause: unknown) => new SqlError({ cause, message: "the statement failed" })

/**
 * Sends a statement. The callback gets the result or the failure. If the driver cannot send the statement, the callback
 * gets a defect.
 */
export const send = (
  client: PostgresClient,
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
  const ended: Callback = (error, result) =>
    once(error == null ? Exit.succeed(result) : Exit.fail(statementFailed(error)))
  try {
    client.query(text, [...params], ended)
  } catch (cause) {
    once(Exit.die(cause))
  }
}

/**
 * Returns the rows of a result. A text of several statements has several results, and counts as a statement that
 * returns no rows.
 */
export const rowsOf = (result: QueryResult | ReadonlyArray<QueryResult>): ReadonlyArray<Row> =>
  "rows" in result ? result.rows : []

/** Makes a connection that waits for each of its statements. */
export const connectionOf = (client: PostgresClient): Connection => {
  const executeRaw = (text: string, params: ReadonlyArray<unknown>) =>
    Effect.callback<QueryResult, SqlError>((resume) => send(client, text, params, resume))
  return { executeRaw, execute: (text, params) => Effect.map(executeRaw(text, params), rowsOf) }
}

/** Makes a connection that can also send statements ahead. A statement that could not be sent counts as failed, too. */
export const pipelineOf = (client: PostgresClient): Connection => ({
  ...connectionOf(client),
  ahead: (text, params, ended) =>
    send(client, text, params, (result) =>
      ended(
        Exit.isSuccess(result)
          ? undefined
          : Option.getOrElse(Cause.findErrorOption(result.cause), () => statementFailed(Cause.squash(result.cause)))
      ))
})
