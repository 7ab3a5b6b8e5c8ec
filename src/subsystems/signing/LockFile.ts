import { Clock, Data, Effect, Schedule } from "effect"
import { stat, unlink } from "node:fs/promises"
import type { FileUnusable } from "../crypto/KeyFile.ts"
import { claimName } from "../crypto/KeyFile.ts"

/** Another process has the lock and keeps it. */
export class LockUnavailable extends Data.TaggedError("LockUnavailable")<{ readonly path: string }> {
  override get message(): string {
    return `${this.path}: the lock is held by another process`
  }
}

const staleMillis = 60_000
const attempts = { schedule: Schedule.spaced("100 millis"), times: 50 }

// A process that was killed leaves its lock behind: what is older than any honest use of it is taken away.
const removeStale = (path: string) =>
  Effect.flatMap(
    Clock.currentTimeMillis,
    (now) =>
      Effect.ignore(Effect.tryPromise(async () => {
        const { mtimeMs } = await stat(path)
        if (now - mtimeMs > staleMillis) await unlink(path)
      }))
  )

// Only a lock that is there is worth waiting for; a file that cannot be made is said at once.
const acquire = (path: string): Effect.Effect<void, FileUnusable | LockUnavailable> =>
  Effect.mapError(claimName(path, 0o644), (error) => error.reason === "exists" ? new LockUnavailable({ path }) : error)
    .pipe(
      Effect.tapErrorTag("LockUnavailable", () => removeStale(path)),
      Effect.retry({ ...attempts, while: ({ _tag }) => _tag === "LockUnavailable" })
    )

/** Runs `use` while an empty file of this name, made for it, keeps other processes out; waits five seconds at most. */
export const withLockFile = <A, E, R>(
  path: string,
  use: Effect.Effect<A, E, R>
): Effect.Effect<A, E | FileUnusable | LockUnavailable, R> =>
  Effect.acquireUseRelease(
    acquire(path),
    () => use,
    () => Effect.ignore(Effect.tryPromise(() => unlink(path)))
  )
