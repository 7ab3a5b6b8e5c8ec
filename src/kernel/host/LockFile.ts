import { Data, Effect, Schedule } from "effect"
import { unlink } from "node:fs/promises"
import type { FileUnusable } from "./KeyFile.ts"
import { claimName, stampOf } from "./KeyFile.ts"

/** Other processes have had the lock in turn, for as long as anybody waits. */
export class LockUnavailable extends Data.TaggedError("LockUnavailable")<{ readonly path: string }> {
  override get message(): string {
    return `${this.path}: other processes have had the lock in turn for ${looks * lookMillis / 1000} s`
  }
}

const lookMillis = 100
const looks = 50
/** Looks at one and the same lock after which nobody has it: an honest use takes a hundredth of that. */
const looksAtDead = 30

/** Takes a lock away if it is that one. Somebody may be quicker between look and deed; see {@link withLockFile}. */
const remove = (path: string, stamp: string): Effect.Effect<void> =>
  Effect.flatMap(
    stampOf(path),
    (now) => now === stamp ? Effect.ignore(Effect.tryPromise(() => unlink(path))) : Effect.void
  )

/**
 * Answers the stamp of the lock once it is there. It is the lock that is watched, not the time on it: a process that was
 * killed leaves one that does not change, whatever clocks say. A file that cannot be made is told at once.
 */
const acquire = (path: string): Effect.Effect<string, FileUnusable | LockUnavailable> =>
  Effect.suspend(() => {
    let [known, seen] = ["", 0]
    const watch = Effect.flatMap(stampOf(path), (stamp) => {
      seen = stamp === known ? seen + 1 : 1
      known = stamp
      return seen > looksAtDead ? remove(path, stamp) : Effect.void
    })
    return claimName(path, 0o644).pipe(
      Effect.mapError((error) => error.reason === "exists" ? new LockUnavailable({ path }) : error),
      Effect.tapErrorTag("LockUnavailable", () => watch),
      Effect.retry({
        schedule: Schedule.spaced(lookMillis),
        times: looks,
        while: ({ _tag }) => _tag === "LockUnavailable"
      }),
      Effect.zipRight(stampOf(path))
    )
  })

/**
 * Runs `use` while an empty file of this name, made for it, keeps other processes out; waits five seconds at most. Of a lock that
 * does not change for three of them the holder is taken for dead. Should it live after all, or two take the lock away at once,
 * two are at work together: `use` has to end well even then.
 */
export const withLockFile = <A, E, R>(
  path: string,
  use: Effect.Effect<A, E, R>
): Effect.Effect<A, E | FileUnusable | LockUnavailable, R> =>
  Effect.acquireUseRelease(acquire(path), () => use, (stamp) => remove(path, stamp))
