import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import type { Sync } from "./CommitSync.ts"
import { makeCommitSync } from "./CommitSync.ts"
import { slow, slowAfterMillis } from "./Database.ts"
import type { Row } from "./Driver.ts"
import { SqlError } from "./SqlError.ts"

/* The files of a SQLite database: whether they are still in their place, and when they are on the disk. */

const lookMillis = 2000

/**
 * Returns a text that identifies a file regardless of its name, or undefined if there is no file. The file is not
 * opened, because closing it would release the locks of the engine.
 */
const identityOf = (path: string): string | undefined => {
  const found = Fs.statSync(path, { throwIfNoEntry: false, bigint: true })
  return found === undefined ? undefined : `${found.dev}:${found.ino}`
}

/** A file of a database that is no longer at its path. */
interface Moved {
  readonly file: string
  readonly isMain: boolean
  readonly word: "removed" | "replaced"
}

/**
 * Records which files a connection has opened. Returns a function that looks whether they are still at their paths. As
 * long as a connection is open, the engine deletes none of them, and makes no new one.
 */
const watchFiles = (path: string): () => Moved | undefined => {
  const opened = ["", "-wal", "-shm"].map((suffix) => [suffix, identityOf(`${path}${suffix}`)] as const)
  return () => {
    for (const [suffix, identity] of opened) {
      const file = `${path}${suffix}`
      const now = identityOf(file)
      // A database that is not in WAL mode has only the main file.
      if (identity === undefined || now === identity) continue
      return { file, isMain: suffix === "", word: now === undefined ? "removed" : "replaced" }
    }
    return undefined
  }
}

/** Looks every two seconds, until a look finds something. */
const firstMoved = (look: () => Moved | undefined): Effect.Effect<Moved> =>
  Effect.delay(
    Effect.suspend(() => {
      const found = look()
      return found === undefined ? firstMoved(look) : Effect.succeed(found)
    }),
    lookMillis
  )

/** Returns whether the path of the write-ahead file names no file, or one to which nobody has written. */
const hasNoWal = (path: string): boolean => (Fs.statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) === 0

/** Returns the sentence about a file that was moved. `isSaved` says whether the main file has all commits. */
const lostFile = ({ file, word }: Moved, isSaved: boolean): string =>
  `The database file ${file} was ${word} while it was in use${
    isSaved
      ? ". Nothing is lost, because the main file has every change. Stop the program that moves it and start again."
      : ": writes are lost from now on. Stop the program that moves it, put the right file back and start again."
  }`

/** Returns the sentence about a database that could not be written to the disk. */
const unwritten = (path: string, { message }: Error): string =>
  `The database ${path} could not be written to the disk: ${message}. The last changes may be lost, and no client was told about them. Check the disk, then start again.`

/** What a process does about its files that others move. */
export interface Guard {
  /** Completes with a sentence if a file was moved, or if commits cannot be written to the disk. */
  readonly lost: Effect.Effect<string>
  /** Fails once a file was found to be moved. */
  readonly unmoved: Effect.Effect<void, SqlError>
}

/**
 * Guards the files that a connection has opened. `copy` copies the write-ahead file into the main file while this
 * process writes nothing. `abandon` lets the connection stay open at the end. `unwritten` completes if commits cannot be
 * written to the disk.
 */
export const guardFiles = (options: {
  readonly path: string
  readonly copy: Effect.Effect<ReadonlyArray<Row>, SqlError>
  readonly abandon: () => void
  readonly unwritten: Effect.Effect<Error>
}): Effect.Effect<Guard, never, Scope.Scope> =>
  Effect.gen(function*() {
    const { path } = options
    const look = watchFiles(path)
    let isLost = false
    /**
     * Ends the writing, and returns whether the main file then has all commits. The write-ahead file that this process
     * has open is whole even if it has no name any more, so it is copied. But if another process has written to a new
     * one, the index that they share tells of both. A copy would then destroy pages, and so would closing.
     */
    const save = ({ isMain }: Moved): Effect.Effect<boolean> =>
      Effect.suspend(() => {
        isLost = true
        if (isMain) return Effect.succeed(false)
        if (hasNoWal(path)) {
          return Effect.match(options.copy, {
            onFailure: () => false,
            onSuccess: ([row]) => row?.["log"] === row?.["checkpointed"]
          })
        }
        options.abandon()
        return Effect.succeed(false)
      })
    // A process may end before the next look.
    yield* Effect.addFinalizer(() => {
      const found = look()
      return found === undefined ? Effect.void : save(found)
    })
    return {
      lost: Effect.raceFirst(
        firstMoved(look),
        // A sync or a copy may have failed only because a file was moved.
        Effect.map(options.unwritten, (error) => look() ?? error)
      ).pipe(Effect.flatMap((found) =>
        found instanceof Error
          ? Effect.succeed(unwritten(path, found))
          : Effect.map(save(found), (isSaved) => lostFile(found, isSaved))
      )),
      unmoved: Effect.suspend(() =>
        isLost ? new SqlError({ cause: undefined, message: "the database file was removed or replaced" }) : Effect.void
      )
    }
  })

/** How many syncs of the write-ahead file run at a time. Each occupies one of the four threads of the runtime. */
const syncsAtOnce = 2

/**
 * Makes the syncs of the write-ahead file in the threads of the runtime. The connection has opened the file before. It
 * has no locks that closing it could release. Syncs that run at the same time have a descriptor each, because the system
 * reports a failed write once for each of them. With a single descriptor, only one of two syncs would fail.
 */
export const makeWalFile = (path: string, othersCommits: () => unknown) => {
  const open = Effect.try({
    try: () => Fs.openSync(path, "r"),
    catch: (cause) => new SqlError({ cause, message: "cannot open the write-ahead file" })
  })
  const opened = Effect.acquireRelease(open, (descriptor) => Effect.sync(() => Fs.closeSync(descriptor)))
  return Effect.map(Effect.replicateEffect(opened, syncsAtOnce), (descriptors) =>
    makeCommitSync({
      syncs: descriptors.map((descriptor): Sync => (ended) => Fs.fdatasync(descriptor, ended)),
      othersCommits,
      slow: (elapsed) => elapsed < slowAfterMillis ? Effect.void : slow("sync", elapsed)
    }))
}
