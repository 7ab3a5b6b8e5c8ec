import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import type { CommitSync } from "./CommitSync.ts"
import { makeCommitSync } from "./CommitSync.ts"
import { slow, slowAfterMillis } from "./Database.ts"

/* The files of a SQLite database: whether they are still in their place, and when they are on the disk. */

const lookMillis = 2000

const identify = ({ dev, ino }: Fs.BigIntStats): string => `${dev}:${ino}`

/**
 * Returns a text that identifies a file regardless of its name, or undefined if there is no file. The file is not
 * opened, because closing it would release the locks of the engine.
 */
export const identityOf = (path: string): string | undefined => {
  const found = Fs.statSync(path, { throwIfNoEntry: false, bigint: true })
  return found === undefined ? undefined : identify(found)
}

/**
 * Completes with a sentence when the path names no file, or a file with another identity than the one that `identity`
 * returned. As long as `identity` returns undefined, nothing is compared.
 */
export const replaced = (path: string, identity: () => string | undefined): Effect.Effect<string> =>
  Effect.sync(() => [identity(), identityOf(path)] as const).pipe(
    Effect.delay(lookMillis),
    Effect.repeat({ while: ([before, now]) => before === undefined || before === now }),
    Effect.map(([, now]) =>
      `The database file ${path} was ${
        now === undefined ? "removed" : "replaced"
      } while it was in use: writes are lost from now on. Stop the program that moves it, put the right file back and start again.`
    )
  )

/** Returns the sentence about a database that could not be written to the disk. */
export const unwritten = (path: string) => ({ message }: Error): string =>
  `The database ${path} could not be written to the disk: ${message}. The last changes may be lost, and no client was told about them. Check the disk, then start again.`

/** The syncs of a write-ahead file. */
export interface WalFile {
  readonly commits: CommitSync
  /** Returns the identity of the synced file, once there is one. */
  readonly identity: () => string | undefined
}

/**
 * Makes the syncs of the write-ahead file in the threads of the runtime. The file is opened at the first sync, because
 * it does not exist before the first commit. The file has no locks that closing it could release.
 */
export const makeWalFile = (path: string, othersCommits: () => unknown) =>
  Effect.gen(function*() {
    let descriptor: number | undefined
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        if (descriptor !== undefined) Fs.closeSync(descriptor)
      })
    )
    const commits = makeCommitSync({
      sync: (ended) => {
        try {
          Fs.fdatasync(descriptor ??= Fs.openSync(path, "r"), ended)
        } catch (error) {
          ended(error instanceof Error ? error : new Error(String(error)))
        }
      },
      othersCommits,
      slow: (elapsed) => elapsed < slowAfterMillis ? Effect.void : slow("sync", elapsed)
    })
    const identity = () => descriptor === undefined ? undefined : identify(Fs.fstatSync(descriptor, { bigint: true }))
    return { commits, identity } satisfies WalFile
  })
