import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { unlink } from "node:fs/promises"
import { codeOf } from "./Exhausted.ts"
import type { FileUnusable } from "./KeyFile.ts"
import { claimName, stampOf } from "./KeyFile.ts"

/**
 * The lock could not be taken. Either other processes held the lock, one after another, during the whole wait. Or no
 * process holds the lock, and its file cannot be removed. In that case `stuck` is the reason, for example that the path
 * is a folder.
 */
export class LockUnavailable extends Data.TaggedError("LockUnavailable")<{
  readonly path: string
  readonly stuck?: string | undefined
}> {
  override get message(): string {
    if (this.stuck !== undefined) return `${this.path} is in the way and cannot be removed (${this.stuck}); remove it`
    return `${this.path}: other processes have held the lock, one after another, for ${looks * lookMillis / 1000} s`
  }
}

const lookMillis = 100
const looks = 50
/**
 * If the lock has not changed after this number of checks, its holder counts as dead. Normal work with the lock takes a
 * hundredth of the time of these checks.
 */
const looksAtDead = 30

/**
 * Removes the lock file if it still has this stamp. If the file cannot be removed, returns the reason. Another process
 * may replace the lock between the check and the removal; see {@link withLockFile}.
 */
const remove = (path: string, stamp: string): Effect.Effect<string | undefined> =>
  Effect.flatMap(
    stampOf(path),
    (now) =>
      now !== stamp ? Effect.succeed(undefined) : Effect.match(
        Effect.tryPromise({ try: () => unlink(path), catch: (cause) => codeOf(cause) ?? "unknown" }),
        { onFailure: (code) => code === "ENOENT" ? undefined : code, onSuccess: () => undefined }
      )
  )

/**
 * Makes the lock file and returns its stamp. While this waits, it checks whether the lock changes, not how old the lock
 * is: the lock of a killed process does not change, and clocks may be wrong. If the file cannot be made for any reason
 * other than an existing lock, this fails at once.
 */
const acquire = (path: string): Effect.Effect<string, FileUnusable | LockUnavailable> =>
  Effect.suspend(() => {
    let [known, seen] = ["", 0]
    let stuck: string | undefined
    const watch = Effect.flatMap(stampOf(path), (stamp) => {
      seen = stamp === known ? seen + 1 : 1
      known = stamp
      return seen > looksAtDead ? Effect.map(remove(path, stamp), (why) => void (stuck = why)) : Effect.void
    })
    return claimName(path, 0o644).pipe(
      Effect.mapError((error) => error.reason === "exists" ? new LockUnavailable({ path }) : error),
      Effect.tapErrorTag("LockUnavailable", () => watch),
      Effect.mapError((error) => error._tag === "LockUnavailable" ? new LockUnavailable({ path, stuck }) : error),
      Effect.retry({
        schedule: Schedule.spaced(lookMillis),
        times: looks,
        while: (error) => error._tag === "LockUnavailable" && error.stuck === undefined
      }),
      Effect.andThen(stampOf(path))
    )
  })

/**
 * Runs `use` while a lock, an empty file of this name, keeps other processes out. Waits for the lock for five seconds
 * at most. If the lock does not change for three seconds, its holder counts as dead. If that holder is still alive, or
 * if two processes remove the lock at the same moment, two processes run `use` at the same time. Even then, the result
 * of `use` must be correct.
 */
export const withLockFile = <A, E, R>(
  path: string,
  use: Effect.Effect<A, E, R>
): Effect.Effect<A, E | FileUnusable | LockUnavailable, R> =>
  Effect.acquireUseRelease(acquire(path), () => use, (stamp) => remove(path, stamp))
