import { Clock, Data, Effect, Schedule } from "effect"
import { open, stat, unlink } from "node:fs/promises"

/** The lock could not be had. */
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

const acquire = (path: string) =>
  Effect.tryPromise({
    try: async () => {
      const file = await open(path, "wx", 0o644)
      await file.close()
    },
    catch: () => new LockUnavailable({ path })
  }).pipe(Effect.tapError(() => removeStale(path)), Effect.retry(attempts))

/** Runs `use` while an empty file of this name, made for it, keeps other processes out; waits five seconds at most. */
export const withLockFile = <A, E, R>(
  path: string,
  use: Effect.Effect<A, E, R>
): Effect.Effect<A, E | LockUnavailable, R> =>
  Effect.acquireUseRelease(
    acquire(path),
    () => use,
    () => Effect.ignore(Effect.tryPromise(() => unlink(path)))
  )
