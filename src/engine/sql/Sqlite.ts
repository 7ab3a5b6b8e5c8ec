import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Fs from "node:fs"
import { finallyDo } from "../Finally.ts"
import { checkpoints } from "./Checkpoints.ts"
import { Database, failed } from "./Database.ts"
import type { Driver } from "./Driver.ts"
import { makeGroupCommit } from "./GroupCommit.ts"
import { makeReaders } from "./Readers.ts"
import { causeOf, withRemedy } from "./Remedies.ts"
import { noConnection, SqlError } from "./SqlError.ts"
import type { SqliteOptions } from "./SqliteConnection.ts"
import { connect } from "./SqliteConnection.ts"
import { guardFiles, makeWalFile } from "./SqliteFiles.ts"
import { synced } from "./Synced.ts"
import { makeRecorder } from "./Unreadable.ts"

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

const make = (options: SqliteOptions) =>
  Effect.gen(function*() {
    const opened = yield* connect(options)
    const { connection } = opened
    const { acquire_timeout_ms = 5000, path, readers = 0 } = options
    const isGrouped = opened.isAppending
    // An earlier process may have failed to write the end of the write-ahead file to the disk, although the system
    // shows this end. A copy in the main file is certain to be on the disk.
    if (isGrouped && readers > 0) {
      for (const pragma of ["synchronous = full", "wal_checkpoint(RESTART)", "synchronous = normal"]) {
        yield* connection.executeRaw(`PRAGMA ${pragma}`, [])
      }
    }
    // The engine opens the files beside a new main file only at the first read.
    yield* whileBusy(connection.executeRaw("PRAGMA schema_version", []))
    const commits = isGrouped ? yield* makeWalFile(`${path}-wal`, opened.dataVersion) : undefined
    const uncopied = yield* Deferred.make<Error>()
    const gate = makeGate(acquire_timeout_ms)
    const beside = readers > 0 && path !== ":memory:"
      ? yield* makeReaders({ path, readers, acquire_timeout_ms })
      : undefined
    const alone: Driver["exclusive"] = (use) => Effect.uninterruptible(gate.pass(use(connection)))
    const files = yield* guardFiles({
      path,
      copy: alone(({ execute }) => execute("PRAGMA wal_checkpoint(FULL)", [])),
      abandon: opened.abandon,
      unwritten: Effect.raceFirst(commits?.failed ?? Effect.never, Deferred.await(uncopied))
    })
    const begin: Driver["begin"] = (connection) =>
      Effect.andThen(files.unmoved, whileBusy(connection.executeRaw("BEGIN IMMEDIATE", [])))
    let committed = 0
    let grown: (() => void) | undefined
    const commit: Driver["commit"] = () =>
      opened.commit(() => {
        commits?.committed()
        if (++committed % commitsBetweenLooks === 0) grown?.()
      })
    const transact = yield* makeGroupCommit({ exclusive: alone, begin, commit })
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
        return synced(
          commits,
          reads ? gate.pass(whileBusy(execute)) : Effect.flatten(transact(() => Effect.exit(execute)))
        )
      },
      transact: (body) => synced(commits, transact(body)),
      aside: beside && ((patienceMillis, body) => synced(commits, beside.aside(patienceMillis, body))),
      begin,
      commit,
      listen: undefined,
      lost: path === ":memory:" ? undefined : files.lost,
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
              failed: (error) =>
                // The engine counts the pages of a copy as written even if the system could not write them.
                codeOf(error).startsWith("SQLITE_IOERR")
                  ? Effect.andThen(
                    Effect.sync(opened.abandon),
                    Deferred.succeed(uncopied, error.cause instanceof Error ? error.cause : new Error(codeOf(error)))
                  )
                  : Effect.ignore(failed(driver, "checkpoint", error))
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
