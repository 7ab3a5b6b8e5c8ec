import type * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type { FailureCause } from "../telemetry/EngineSeries.ts"
import type { Dialect } from "./Column.ts"
import type { CommitSync } from "./CommitSync.ts"
import type { SqlError } from "./SqlError.ts"
import type { Compiled } from "./Statement.ts"
import type { Unreadable } from "./Unreadable.ts"

/** A row as the engine returns it. */
export interface Row {
  readonly [column: string]: unknown
}

/** Executes statements. */
export interface Executor {
  /** Returns the rows of a statement. */
  readonly execute: (text: string, params: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<Row>, SqlError>
  /**
   * Sends a statement that returns no rows, and does not wait for the answer. The database runs statements in the order
   * in which they were sent. `ended` is called when the answer arrives, before any later statement ends. If the
   * statement fails, the transaction cannot commit.
   */
  readonly ahead?: (
    text: string,
    params: ReadonlyArray<unknown>,
    ended: (failure: SqlError | undefined) => void
  ) => void
}

/** A connection. `executeRaw` is for statements that return no rows. It returns the engine's own result. */
export interface Connection extends Executor {
  readonly executeRaw: (text: string, params: ReadonlyArray<unknown>) => Effect.Effect<unknown, SqlError>
}

/**
 * The receiver of notifications. `heard` is called with each notification. `listening` runs when notifications can be
 * received.
 */
export interface Ear {
  readonly heard: (payload: string) => void
  readonly listening: Effect.Effect<void>
}

/** How many connections a process has to its database. */
export interface Connections {
  readonly idle: number
  readonly busy: number
}

/** The state of a server, by which a standby is compared with the server that it follows. */
export interface Position {
  /**
   * The numbers that a cluster and a database in it get when they are made. Copies of the database have the same
   * numbers.
   */
  readonly database: string
  /** The number that each promotion raises. */
  readonly timeline: number
  readonly isStandby: boolean
  /** When the server was started. */
  readonly server: string
  /** The end of the log that the server has written to its disk or, as a standby, has replayed; in octets. */
  readonly log: number
  /** The time of the server, in epoch seconds. */
  readonly now: number
  /** When the last transaction that a standby has replayed was committed, by the clock of the server it follows. */
  readonly replayed: number | null
}

/** What a process knows about its standby from its last read there. */
export interface StandbyState {
  /** `untried` before the first read, `answers`, or the reason why the primary answered instead. */
  readonly state: "untried" | "answers" | "away" | "behind" | "foreign" | "failed"
  /** How many milliseconds the standby was behind, at most, when it last answered. */
  readonly lagMs?: number
}

/** A second server, whose copy of the database may lack the last changes (docs/contribute/decisions/standby.md). */
export interface Standby {
  /**
   * The database, with its reads sent to the standby. Reads that the standby cannot answer, and everything else, go to
   * the database itself. Only requests that `Lag.ts` admits may use it.
   */
  readonly driver: Driver
  /**
   * Returns whether a read may go to the standby, because the standby answered the last time or it is time to try
   * again.
   */
  readonly isUsable: Effect.Effect<boolean>
  /** Returns what the last read has shown. Sends nothing to the standby. */
  readonly state: () => StandbyState
  /** Reads the state of the server that takes the writes. */
  readonly primary: Effect.Effect<Position, SqlError>
  /** Returns the current connections of this process to the standby. */
  readonly connections: () => Connections
}

/** What an engine provides: its connections, its transactions and the description of its errors. */
export interface Driver {
  readonly dialect: Dialect
  /**
   * Runs `use` with a connection of its own. Neither the wait for the connection nor `use` can be interrupted, and this
   * process sets no time limit for its statements.
   */
  readonly exclusive: <A, E, R>(
    use: (connection: Connection) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | SqlError, R>
  /** Runs one statement outside a transaction. */
  readonly single: (
    statement: Compiled,
    params: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError>
  /**
   * Runs `body` in a transaction, more than once if necessary. The transaction commits if the exit of the body is a
   * success. Returns after the commit.
   */
  readonly transact: <A, E, R>(
    body: (connection: Connection) => Effect.Effect<Exit.Exit<A, E>, never, R>
  ) => Effect.Effect<Exit.Exit<A, E>, SqlError, R>
  /**
   * Runs reads on a connection of their own, outside the event loop of this process. All of them together may take
   * `patienceMillis`. After that, or when `body` is interrupted, the engine cancels the read that is running. The wait
   * for the connection can also be interrupted. Undefined if there is only one connection.
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
   * Opens a separate connection that receives the notifications of other processes on a channel. Fails if that
   * connection is lost. Undefined if the engine has no notifications.
   */
  readonly listen: ((channel: string, ear: Ear) => Effect.Effect<never, SqlError>) | undefined
  /**
   * Completes with a sentence if the opened database was removed or replaced, or if commits cannot be written to the
   * disk. Undefined if the database is on a server.
   */
  readonly lost: Effect.Effect<string> | undefined
  /** How this process waits for the disk. Undefined if each commit itself waits for the disk. */
  readonly commits?: CommitSync | undefined
  /** The work that a process does for the database as long as it serves. Undefined if there is none. */
  readonly upkeep?: Effect.Effect<never> | undefined
  /** The standby. Undefined if every read goes to the database itself. */
  readonly standby?: Standby | undefined
  /** Whether a connection keeps the same session of the server from one transaction to the next. */
  readonly keepsSession: boolean
  readonly describe: (
    error: SqlError
  ) => { readonly detail: string; readonly transient: boolean; readonly cause: FailureCause }
  /** Logs a row that cannot be read. */
  readonly unreadable: (found: Unreadable) => Effect.Effect<void>
  /** Returns whether the server refuses writes, as far as this process has noticed lately. */
  readonly isReadOnly: () => boolean
  /** Returns the current connections of this process, without those to the standby. */
  readonly connections: () => Connections
}
