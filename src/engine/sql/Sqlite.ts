import Sqlite from "better-sqlite3"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { finallyDo } from "../Finally.ts"
import { checkpoints } from "./Checkpoints.ts"
import { makeCommitSync } from "./CommitSync.ts"
import { Database, failed, slow, slowAfterMillis } from "./Database.ts"
import type { Connection, Driver, Row } from "./Driver.ts"
import { makeGroupCommit } from "./GroupCommit.ts"
import { makeReaders } from "./Readers.ts"
import { causeOf, withRemedy } from "./Remedies.ts"
import { noConnection, SqlError } from "./SqlError.ts"
import { synced } from "./Synced.ts"
import { makeRecorder } from "./Unreadable.ts"

/**
 * The options of the embedded engine. `path` is `database.url` after `sqlite://`, or `:memory:`; `synchronous` is
 * `database.sqlite.synchronous`.
 */
export interface SqliteOptions {
  readonly path: string
  readonly synchronous: "normal" | "full" | "grouped"
  /** How long a transaction waits for the only connection that writes. */
  readonly acquire_timeout_ms?: number
  /** How many separate processes may read. A command has none, because it has no other work that a read could delay. */
  readonly readers?: number
  /** Whether to open only an existing file, without changing its journal mode, which is stored in the file. */
  readonly mustExist?: boolean
}

const codeOf = (error: SqlError): string =>
  typeof error.cause === "object" && error.cause !== null && "code" in error.cause ? String(error.cause.code) : ""

const isBusy = (error: SqlError): boolean => codeOf(error).startsWith("SQLITE_BUSY")

// Most of the documented busy timeout of 5 s is spent in Effect. The driver itself waits for only 20 ms at a time,
// because its wait blocks the event loop.
const whileBusy = <A, R>(self: Effect.Effect<A, SqlError, R>): Effect.Effect<A, SqlError, R> =>
  Effect.catchIf(
    self,
    isBusy,
    () => Effect.retry(self, { schedule: Schedule.spaced("25 millis"), times: 110, while: isBusy })
  )

const describe: Driver["describe"] = (error) => ({
  detail: error.cause instanceof Error ? withRemedy(codeOf(error), error.cause.message) : error.message,
  transient: false,
  cause: error.cause instanceof Error ? causeOf(codeOf(error), error.cause.message) : "other"
})

const lookMillis = 2000

/**
 * Returns a text that identifies a file regardless of its name, or undefined if there is no file. The file is not
 * opened, because closing it would release the locks of the engine.
 */
const identityOf = (path: string): string | undefined => {
  const found = Fs.statSync(path, { throwIfNoEntry: false, bigint: true })
  return found === undefined ? undefined : `${found.dev}:${found.ino}`
}

const replaced = (path: string, opened: string | undefined): Effect.Effect<string> =>
  Effect.sync(() => identityOf(path)).pipe(
    Effect.delay(lookMillis),
    Effect.repeat({ while: (now) => now === opened }),
    Effect.map((now) =>
      `The database file ${path} was ${
        now === undefined ? "removed" : "replaced"
      } while it was in use: writes are lost from now on. Stop the program that moves it, put the right file back and start again.`
    )
  )

const unwritten = (path: string) => ({ message }: Error) =>
  `The write-ahead file ${path}-wal could not be written to the disk: ${message}. The last changes may be lost, and no client was told about them. Check the disk, then start again.`

const mostPrepared = 500

/** The one connection that writes. */
interface Opened {
  readonly connection: Connection
  /** Returns a number that changes when another connection has committed. */
  readonly dataVersion: () => unknown
}

/** Opens the file (docs/decisions/hot-path.md, "Statements of the embedded engine"). */
const connect = (
  { mustExist = false, path, synchronous }: SqliteOptions
): Effect.Effect<Opened, SqlError, Scope.Scope> =>
  Effect.gen(function*() {
    const engine = yield* Effect.acquireRelease(
      Effect.try({
        try: () => new Sqlite(path),
        catch: (cause) => new SqlError({ cause, message: "cannot open the database file" })
      }),
      (opened) => Effect.sync(() => opened.close())
    )
    const prepared = new Map<string, Sqlite.Statement>()
    const prepare = (text: string): Sqlite.Statement => {
      const known = prepared.get(text)
      if (known !== undefined) return known
      // The service has few different statements. Lists with filters are the only source of more.
      if (prepared.size >= mostPrepared) prepared.clear()
      const fresh = engine.prepare(text)
      prepared.set(text, fresh)
      return fresh
    }
    const execute = (text: string, params: ReadonlyArray<unknown>) =>
      Effect.try({
        try: (): ReadonlyArray<Row> => {
          const statement = prepare(text)
          if (statement.reader) return statement.all(...params) as ReadonlyArray<Row>
          statement.run(...params)
          return []
        },
        catch: (cause) => new SqlError({ cause, message: "the statement failed" })
      })
    const connection: Connection = { execute, executeRaw: execute }
    const ofFile = mustExist ? [] : ["journal_mode = WAL"]
    const atCommit = synchronous === "grouped" ? "normal" : synchronous
    for (const pragma of [...ofFile, "busy_timeout = 20", "foreign_keys = ON", `synchronous = ${atCommit}`]) {
      yield* connection.executeRaw(`PRAGMA ${pragma}`, [])
    }
    const version = engine.prepare("PRAGMA data_version").pluck()
    return { connection, dataVersion: () => version.get() }
  })

/**
 * Makes a gate through which one user at a time gets the writing connection, in the order of arrival. A wait ends after
 * `patienceMillis`. Both the wait and the use can be interrupted if the caller allows this.
 */
const makeGate = (patienceMillis: number) => {
  let isFree = true
  const waiting = new Set<() => void>()
  const leave = () => {
    const [next] = waiting
    if (next === undefined) isFree = true
    else {
      waiting.delete(next)
      next() // the connection is passed directly to the next user
    }
  }
  const wait = Effect.callback<void, SqlError>((resume) => {
    let isIn = false
    const enter = () => {
      isIn = true
      clearTimeout(timer)
      resume(Effect.void)
    }
    const timer = setTimeout(() => {
      waiting.delete(enter)
      resume(noConnection(patienceMillis))
    }, patienceMillis)
    waiting.add(enter)
    return Effect.sync(() => {
      clearTimeout(timer)
      waiting.delete(enter)
      if (isIn) leave()
    })
  })
  return {
    pass: <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
      Effect.uninterruptibleMask((restore) => {
        if (!isFree) return Effect.andThen(restore(wait), finallyDo(restore(use), leave))
        isFree = false
        return finallyDo(restore(use), leave)
      }),
    isFree: () => isFree
  }
}

/** The number of commits after which the length of the write-ahead file is checked. */
const commitsBetweenLooks = 32

/**
 * Makes the syncs of the write-ahead file in the threads of the runtime. The file is opened at the first sync, because
 * it does not exist before the first commit. It has no locks that closing it could release.
 */
const makeFileSync = ({ dataVersion }: Opened, path: string) =>
  Effect.gen(function*() {
    const file: { descriptor?: number } = {}
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        if (file.descriptor !== undefined) Fs.closeSync(file.descriptor)
      })
    )
    return makeCommitSync({
      sync: (ended) => {
        try {
          Fs.fdatasync(file.descriptor ??= Fs.openSync(`${path}-wal`, "r+"), ended)
        } catch (error) {
          ended(error instanceof Error ? error : new Error(String(error)))
        }
      },
      othersCommits: dataVersion,
      slow: (elapsed) => elapsed < slowAfterMillis ? Effect.void : slow("sync", elapsed)
    })
  })

const make = (options: SqliteOptions) =>
  Effect.gen(function*() {
    const opened = yield* connect(options)
    const { connection } = opened
    const { acquire_timeout_ms = 5000, path, readers = 0 } = options
    const isGrouped = options.synchronous === "grouped" && path !== ":memory:"
    const commits = isGrouped ? yield* makeFileSync(opened, path) : undefined
    const gate = makeGate(acquire_timeout_ms)
    const beside = readers > 0 && path !== ":memory:"
      ? yield* makeReaders({ path, readers, acquire_timeout_ms })
      : undefined
    const alone: Driver["exclusive"] = (use) => Effect.uninterruptible(gate.pass(use(connection)))
    const begin: Driver["begin"] = (connection) => whileBusy(connection.executeRaw("BEGIN IMMEDIATE", []))
    let committed = 0
    let grown: (() => void) | undefined
    const commit: Driver["commit"] = (connection) =>
      Effect.map(connection.executeRaw("COMMIT", []), () => {
        commits?.committed()
        if (++committed % commitsBetweenLooks === 0) grown?.()
      })
    const transact = yield* makeGroupCommit({ exclusive: alone, begin, commit })
    const whenSynced = <A, E, R>(self: Effect.Effect<A, E, R>) => synced(commits, self)
    const driver: Driver = {
      dialect: "sqlite",
      exclusive: commits === undefined ? alone : (use) =>
        Effect.uninterruptible(
          Effect.tap(alone(use), () => {
            commits.committed()
            return commits.now
          })
        ),
      single: ({ reads, text }, params) => {
        const execute = connection.execute(text, params)
        // A read also waits at the gate. Otherwise it would become a part of the transaction that is open on the only
        // connection.
        return whenSynced(
          reads ? gate.pass(whileBusy(execute)) : Effect.flatten(transact(() => Effect.exit(execute)))
        )
      },
      transact: (body) => whenSynced(transact(body)),
      aside: beside && ((patienceMillis, body) => whenSynced(beside.aside(patienceMillis, body))),
      begin,
      commit,
      listen: undefined,
      lost: path === ":memory:"
        ? undefined
        : Effect.raceFirst(
          replaced(path, identityOf(path)),
          Effect.map(commits?.failed ?? Effect.never, unwritten(path))
        ),
      commits,
      upkeep: isGrouped
        ? Effect.acquireUseRelease(
          Effect.ignore(alone(({ executeRaw }) => executeRaw("PRAGMA wal_autocheckpoint = 0", []))),
          () =>
            checkpoints({
              path,
              grown: Effect.callback((resume) => {
                grown = () => resume(Effect.void)
              }),
              alone: (use) => alone(() => use),
              failed: (error) => Effect.ignore(failed(driver, "checkpoint", error))
            }),
          () => Effect.ignore(alone(({ executeRaw }) => executeRaw("PRAGMA wal_autocheckpoint = 1000", [])))
        )
        : undefined,
      keepsSession: true,
      describe,
      unreadable: makeRecorder(),
      isReadOnly: () => false,
      connections: () => {
        const { busy, idle } = beside?.connections() ?? { busy: 0, idle: 0 }
        return gate.isFree() ? { idle: idle + 1, busy } : { idle, busy: busy + 1 }
      }
    }
    return Database.of(driver)
  })

// The engine itself would create the file with the permissions that the umask of the process allows.
const createPrivately = ({ mustExist = false, path }: SqliteOptions): Effect.Effect<void, SqlError> =>
  path === ":memory:"
    ? Effect.void
    : Effect.try({
      try: () => Fs.closeSync(Fs.openSync(path, Fs.constants.O_RDWR | (mustExist ? 0 : Fs.constants.O_CREAT), 0o600)),
      catch: (cause) => new SqlError({ cause, message: "cannot open the database file" })
    })

/**
 * Provides the embedded engine, with foreign keys and a single connection that writes. If the file does not exist and
 * `mustExist` is not set, the file is created at the first use, with mode 0600 and in WAL mode.
 */
export const layer = (options: SqliteOptions): Layer.Layer<Database, SqlError> =>
  Layer.effect(Database, make(options)).pipe(
    (opened) => Layer.unwrap(Effect.as(createPrivately(options), opened))
  )
