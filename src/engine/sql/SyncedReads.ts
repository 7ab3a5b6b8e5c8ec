import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { CommitSync } from "./CommitSync.ts"
import type { Database } from "./Database.ts"
import { driverOf } from "./Database.ts"
import type { SqlError } from "./SqlError.ts"

/* Reads on a database whose commits share syncs: what they show may not be on the disk yet. */

/** The last commit that any read of a fiber may have shown since {@link oneSync} began. Undefined outside of it. */
const shownSoFar = Context.Reference<{ commit: number } | undefined>("acme/engine/sql/CommitSync/shownSoFar", {
  defaultValue: () => undefined
})

/** Runs a read, and waits for the commits that it may show. Within {@link oneSync} it only notes them. */
export const synced = <A>(commits: CommitSync, read: Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
  Effect.withFiber((fiber) => {
    const sofar = fiber.getRef(shownSoFar)
    return Effect.flatMap(read, (rows) => {
      const commit = commits.shown()
      if (sofar === undefined) return Effect.as(commits.upTo(commit), rows)
      sofar.commit = commit
      return Effect.succeed(rows)
    })
  })

/**
 * Runs an effect whose reads do not wait for the disk. Its result waits once instead, for everything that the reads may
 * have shown. Nothing that depends on a read may leave the process before. Fails if the sync has failed.
 */
export const oneSync = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R | Database> =>
  Effect.withFiber((fiber) => {
    const { commits } = driverOf(fiber)
    if (commits === undefined) return self
    const sofar = { commit: 0 }
    return Effect.tap(Effect.provideService(self, shownSoFar, sofar), () => commits.upTo(sofar.commit))
  })
