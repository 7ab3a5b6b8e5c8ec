import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { emit } from "../telemetry/EngineLog.ts"
import type { StandbyOutcome } from "../telemetry/EngineSeries.ts"
import { count } from "../telemetry/EngineSeries.ts"
import { over } from "./Database.ts"
import type { Connections, Driver, Executor, Position, Row, Standby, StandbyState } from "./Driver.ts"
import type { Allowance } from "./Lag.ts"
import { allowance } from "./Lag.ts"
import { codeOf, isUnanswered } from "./PostgresClient.ts"
import type { Reading } from "./PostgresReading.ts"
import type { ReaderSemaphore } from "./ReaderSemaphore.ts"
import { withRemedy } from "./Remedies.ts"
import { Late, SqlError } from "./SqlError.ts"

/*
 * Reads of a PostgreSQL standby. Each read is judged by the state of the standby in its own transaction, because each
 * connection to a URL may reach a different server. If the standby cannot answer, the primary does.
 */

/**
 * Asks for a {@link Position}. The timeline of a standby is in its control file, which every role may read. The file
 * may be some minutes old. In this case the standby counts as one with a different timeline.
 */
export const askPosition = `SELECT (SELECT c.system_identifier || '/' || d.oid FROM pg_control_system() c, pg_database d
    WHERE d.datname = current_database()) AS "database",
  CASE WHEN pg_is_in_recovery()
    THEN (SELECT greatest(c.timeline_id, r.min_recovery_end_timeline) FROM pg_control_checkpoint() c, pg_control_recovery() r)
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_flush_lsn()), 8))::bit(32)::int END AS "timeline",
  pg_is_in_recovery() AS "isStandby", extract(epoch FROM pg_postmaster_start_time())::text AS "server",
  (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END - '0/0'::pg_lsn)::float8
    AS "log",
  extract(epoch FROM now())::float8 AS "now", extract(epoch FROM pg_last_xact_replay_timestamp())::float8 AS "replayed"`

/** Reads the state of the server of a database. */
export const position = ({ single }: Driver): Effect.Effect<Position, SqlError> =>
  Effect.map(single({ text: askPosition, order: [], reads: true }, []), ([row]) => row as unknown as Position)

/** Returns the row of {@link askPosition}, which was sent as the last but one of several statements. */
const positionOf = (answers: unknown): Position => {
  const result: unknown = Array.isArray(answers) ? answers.at(-2) : undefined
  return (result as { readonly rows: readonly [Position] }).rows[0]
}

/** Why the primary answers a read in place of the standby. */
class Refused extends Data.TaggedError("Refused")<{
  readonly outcome: Exclude<StandbyOutcome, "standby">
  readonly detail: string
  /** Whether the standby may answer the next read. After `changed` and `conflict` it always may. */
  readonly isPassing?: boolean
}> {}

/**
 * Returns the highest number of seconds by which a server may be behind the primary, or why the server must not answer.
 */
export const lagOf = (primary: Position, at: Position, mostSeconds: number): number | Refused => {
  const foreign = (detail: string) => new Refused({ outcome: "foreign", detail })
  if (at.database !== primary.database) return foreign("it is no copy of the database of database.url")
  if (at.timeline !== primary.timeline) {
    return foreign(`its timeline is ${at.timeline}, and that of the server of database.url is ${primary.timeline}`)
  }
  if (!at.isStandby) return at.server === primary.server ? 0 : foreign("it follows no server")
  if (at.log >= primary.log) return 0
  if (at.replayed === null) {
    return new Refused({ outcome: "behind", detail: "it has replayed no transaction since its start" })
  }
  // Both times are by the primary's clock. The standby has everything that was committed before `replayed`.
  const lag = Math.max(0, primary.now - at.replayed)
  return lag <= mostSeconds
    ? lag
    : new Refused({
      outcome: "behind",
      detail: `it is ${Math.round(lag)} s behind, and database.read_max_lag_seconds is ${mostSeconds}`
    })
}

const conflicts = new Set(["40001", "40P01"])
/** The codes of a server that ends the connection or cannot be reached. */
const ofConnection = /^(08|57P|53300|28|3D|E[A-Z]+$)/

const detailOf = ({ cause, message = "" }: SqlError): string =>
  cause instanceof Error ? withRemedy(codeOf(cause), cause.message || cause.name) : message

const refusalOf = (error: SqlError): Refused => {
  const code = codeOf(error.cause)
  const detail = detailOf(error)
  if (conflicts.has(code)) return new Refused({ outcome: "conflict", detail })
  // The server may have ended an idle transaction for its replay. If the server is gone, the next read cannot connect.
  const isLost = code === "" || ofConnection.test(code)
  // A server that does not answer would not answer the next read either.
  return new Refused({ outcome: isLost ? "away" : "failed", detail, isPassing: isLost && !isUnanswered(error.cause) })
}

/** No connection to the standby could be made. */
class Unreached extends Data.TaggedError("Unreached")<{ readonly error: SqlError }> {}

/** Marks a failed wait for a connection, because this failure has nothing to do with the read. */
export const reaching = <A>(reserve: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
  Effect.mapError(reserve, (error) => new SqlError({ cause: new Unreached({ error }) }))

const isLate = ({ cause }: SqlError): boolean => cause instanceof Late

type Body<A, E, R> = (connection: Executor) => Effect.Effect<Exit.Exit<A, E>, never, R>

/** Returns the body with a check before it. If the standby may not answer, the body does not run. */
const judged = <A, E, R>(
  { changes, known, mostSeconds: mostStatedSeconds, note, primary }: Allowance,
  mostSeconds: number,
  body: Body<A, E, R>
): (connection: Executor, answers: unknown) => Effect.Effect<Exit.Exit<A, E> | Refused, never, R> =>
(connection, answers) => {
  const lag = lagOf(primary, positionOf(answers), mostSeconds)
  if (typeof lag !== "number") return Effect.succeed(lag)
  if (lag > mostStatedSeconds()) {
    return Effect.succeed(
      new Refused({ outcome: "behind", detail: "the answer states a smaller lag", isPassing: true })
    )
  }
  let failure: SqlError | undefined
  const noting: Executor = {
    execute: (text, params) =>
      Effect.tapError(connection.execute(text, params), (error) => Effect.sync(() => void (failure ??= error)))
  }
  // A read that was late here would be late at the primary too.
  const refusal = () => failure === undefined || isLate(failure) ? undefined : refusalOf(failure)
  // The fiber already has the database that the count requires.
  const counted = over(noting, changes) as Effect.Effect<number, unknown>
  return Effect.flatMap(Effect.exit(counted), (found): Effect.Effect<Exit.Exit<A, E> | Refused, never, R> => {
    if (Exit.isFailure(found) || found.value < known) {
      const lacking = new Refused({ outcome: "changed", detail: "it lacks a change of an operator" })
      return Effect.succeed(refusal() ?? lacking)
    }
    return Effect.map(body(noting), (exit) => {
      const refused = Exit.isFailure(exit) ? refusal() : undefined
      if (refused === undefined) note(lag)
      return refused ?? exit
    })
  })
}

const pauseMillis = 2000

/** Tracks whether the standby can be used, according to the last reads. */
class Standing {
  #refused: Refused | undefined
  #pausedUntil = 0
  #state: StandbyState = { state: "untried" }

  get state(): StandbyState {
    return this.#state
  }

  /** Whether the standby has just refused a read, and would refuse the next one too. */
  get isPaused(): boolean {
    return performance.now() < this.#pausedUntil
  }

  /** Counts a read that the primary answers instead. Of several in a row for the same reason, logs only the first. */
  readonly left = (refusal: Refused): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { detail: error, isPassing, outcome: reason } = refusal
      const counted = count("acme_svc_database_standby_reads_total", { outcome: reason })
      if (isPassing === true || reason === "changed" || reason === "conflict") return counted
      const before = this.#refused
      this.#refused = refusal
      this.#state = { state: reason }
      this.#pausedUntil = performance.now() + pauseMillis
      return before?.outcome === reason ? counted : Effect.andThen(counted, emit("db_standby_left", { reason, error }))
    })

  /** Counts a read that the standby has answered. */
  readonly used = (lagSeconds: number): Effect.Effect<void> =>
    Effect.suspend(() => {
      this.#state = { state: "answers", lagMs: Math.ceil(lagSeconds * 1000) }
      const counted = count("acme_svc_database_standby_reads_total", { outcome: "standby" })
      if (this.#refused === undefined) return counted
      this.#refused = undefined
      return Effect.andThen(counted, emit("db_standby_used", {}))
    })

  /** Returns whether a read may go to the standby now. If it may not, counts the read. */
  readonly isUsable: Effect.Effect<boolean> = Effect.suspend(() =>
    this.#refused === undefined || !this.isPaused
      ? Effect.succeed(true)
      : Effect.as(count("acme_svc_database_standby_reads_total", { outcome: this.#refused.outcome }), false)
  )
}

/** The parts of a standby: how to read from it, and its limits. */
export interface StandbyParts {
  /** Reads over connections from {@link reaching}, with {@link askPosition}. */
  readonly read: Reading
  readonly readers: ReaderSemaphore
  readonly connections: () => Connections
  readonly mostLagSeconds: number
  readonly statementMillis: () => number
}

/** Adds a standby to the database of the primary. */
export const withStandby = (
  primary: Driver & { readonly aside: NonNullable<Driver["aside"]> },
  { connections, mostLagSeconds, read, readers, statementMillis }: StandbyParts
): Driver => {
  const standing = new Standing()

  /** Runs a read at the standby, or `otherwise` if the request may not read there or the standby cannot answer. */
  const reading = <A, E, R>(
    take: ReaderSemaphore["take"],
    patienceMillis: number,
    body: Body<A, E, R>,
    otherwise: Effect.Effect<Exit.Exit<A, E>, SqlError, R>
  ): Effect.Effect<Exit.Exit<A, E>, SqlError, R> =>
    Effect.withFiber((fiber) => {
      const allowed = fiber.getRef(allowance)
      if (allowed === undefined || allowed.mostSeconds() < 0 || standing.isPaused) return otherwise
      const instead = (refusal: Refused) => Effect.andThen(standing.left(refusal), otherwise)
      let lag = 0
      const note = (seconds: number) => {
        lag = seconds
        allowed.note(seconds)
      }
      return Effect.matchEffect(take(read(patienceMillis, judged({ ...allowed, note }, mostLagSeconds, body))), {
        onFailure: (error) => {
          const { cause } = error
          if (cause instanceof Unreached) {
            return instead(new Refused({ outcome: "away", detail: detailOf(cause.error) }))
          }
          return isLate(error) ? Effect.fail(error) : instead(refusalOf(error))
        },
        onSuccess: (answer) => answer instanceof Refused ? instead(answer) : Effect.as(standing.used(lag), answer)
      })
    })

  const driver: Driver = {
    ...primary,
    // Only `single` and `aside` run reads. A transaction may write, so it goes to the primary.
    single: (statement, params) =>
      statement.reads
        ? Effect.flatMap(
          reading<ReadonlyArray<Row>, SqlError, never>(
            (self) => self,
            statementMillis(),
            (connection) => Effect.exit(connection.execute(statement.text, params)),
            Effect.exit(primary.single(statement, params))
          ),
          (exit) => exit
        )
        : primary.single(statement, params),
    aside: (patienceMillis, body) => reading(readers.take, patienceMillis, body, primary.aside(patienceMillis, body)),
    standby: undefined
  }

  const asked = Effect.tapError(position(primary), (error) => {
    const { detail, outcome } = refusalOf(error)
    // If the primary cannot be reached, this is not the fault of the standby.
    return outcome === "failed"
      ? standing.left(new Refused({ outcome, detail: `the server of database.url: ${detail}` }))
      : Effect.void
  })

  const standby: Standby = {
    driver,
    isUsable: standing.isUsable,
    state: () => standing.state,
    primary: asked,
    connections
  }
  return { ...primary, standby }
}
