import * as Effect from "effect/Effect"
import type { CommitSync } from "./CommitSync.ts"
import { neededSoFar } from "./CommitSync.ts"
import type { Database } from "./Database.ts"
import { driverOf } from "./Database.ts"
import type { SqlError } from "./SqlError.ts"

/* Waiting for the disk on a database whose commits share syncs. */

/**
 * Runs a read or a transaction, and waits until everything that it has committed, or may have read, is on the disk.
 * Within {@link oneSync} it only notes what has to be waited for.
 */
export const synced = <A, E, R>(
  commits: CommitSync | undefined,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E | SqlError, R> => {
  if (commits === undefined) return self
  return Effect.withFiber((fiber) => {
    const needed = fiber.getRef(neededSoFar)
    return Effect.flatMap(self, (result) => {
      const commit = commits.last()
      if (needed === undefined) return Effect.as(commits.upTo(commit), result)
      needed.commit = commit
      return Effect.succeed(result)
    })
  })
}

/**
 * Runs an effect whose reads and transactions do not wait for the disk. Instead, the result waits once. Effects that
 * the transactions run after their commit, such as the start of a job, still wait for the disk. Nothing else that
 * depends on the database may leave the process before the result. Fails if the sync has failed.
 */
export const oneSync = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R | Database> =>
  Effect.withFiber((fiber) => {
    const { commits } = driverOf(fiber)
    if (commits === undefined) return self
    const needed = { commit: 0 }
    return Effect.tap(Effect.provideService(self, neededSoFar, needed), () => commits.upTo(needed.commit))
  })

/** Runs an effect for other fibers without waiting for the disk. Each of those fibers waits itself, by {@link synced}. */
export const unsynced = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(self, neededSoFar, { commit: 0 })

/**
 * Runs an effect whose result outlives a request or is shared by several requests. Its reads and transactions wait for
 * the disk, also within {@link oneSync}.
 */
export const eachSynced = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(self, neededSoFar, undefined)
