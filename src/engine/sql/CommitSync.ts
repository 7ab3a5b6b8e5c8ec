import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { SqlError } from "./SqlError.ts"

/** Waits until what this process has committed or read is on the disk. */
export interface CommitSync {
  /** Records that this process has committed. */
  readonly committed: () => void
  /** Returns the number of the last commit, of this process or of another one. */
  readonly last: () => number
  /** Waits until all commits up to a number are on the disk. */
  readonly upTo: (commit: number) => Effect.Effect<void, SqlError>
  /** Waits until everything that is committed so far is on the disk. */
  readonly now: Effect.Effect<void, SqlError>
  /** Completes with the reason once a sync has failed. */
  readonly failed: Effect.Effect<Error>
}

interface Waiter {
  /** The number of the last commit that the waiter needs. */
  readonly commit: number
  readonly resume: (result: Effect.Effect<void, SqlError>) => void
}

/**
 * Makes one sync cover the commits of many callers. One sync runs at a time. A commit that is made in the meantime
 * waits for the next sync, which begins as soon as the first one ends.
 *
 * A failed sync is final: the system may have dropped the data that it could not write, and a later sync would succeed
 * without these data. So from then on every caller gets the failure.
 *
 * `sync` writes everything that was committed so far to the disk, and calls back. `othersCommits` returns a value that
 * changes when another connection has committed. `slow` gets the milliseconds of each sync, and reports a sync that
 * took too long.
 */
export const makeCommitSync = (options: {
  readonly sync: (ended: (failure: Error | null) => void) => void
  readonly othersCommits: () => unknown
  readonly slow: (elapsed: number) => Effect.Effect<void>
}): CommitSync => {
  // Commit 1 stands for everything that the database contains at startup. A killed process may have left it unsynced.
  let last = 1
  let synced = 0
  let others: unknown
  let isRunning = false
  let failure: Error | undefined
  const waiting = new Set<Waiter>()
  const told = new Set<(reason: Error) => void>()

  const fail = () => new SqlError({ cause: failure, message: "the sync failed" })

  const begin = () => {
    isRunning = true
    const commit = last
    const begunAt = performance.now()
    options.sync((failed) => {
      isRunning = false
      if (failed === null) synced = commit
      else failure = failed
      let result: Effect.Effect<void, SqlError> = options.slow(performance.now() - begunAt)
      for (const one of waiting) {
        if (failure === undefined && one.commit > synced) continue
        waiting.delete(one)
        one.resume(failure === undefined ? result : fail())
        result = Effect.void // only one of the waiters reports a slow sync
      }
      if (failure !== undefined) { for (const tell of told) tell(failure) }
      // A waiter that was resumed may have begun the next sync already.
      else if (waiting.size > 0 && !isRunning) begin()
    })
  }

  const upTo = (commit: number) =>
    Effect.suspend(() => {
      if (failure !== undefined) return fail()
      if (commit <= synced) return Effect.void
      return Effect.callback<void, SqlError>((resume) => {
        const one: Waiter = { commit, resume }
        waiting.add(one)
        if (!isRunning) begin()
        return Effect.sync(() => void waiting.delete(one))
      })
    })

  const lastCommit = () => {
    let now: unknown
    try {
      now = options.othersCommits()
    } catch {
      now = Symbol("unknown") // an additional sync is safe
    }
    if (now !== others) {
      others = now
      last++
    }
    return last
  }

  return {
    committed: () => void last++,
    last: lastCommit,
    upTo,
    now: Effect.suspend(() => upTo(lastCommit())),
    failed: Effect.callback((resume) => {
      const tell = (reason: Error) => resume(Effect.succeed(reason))
      if (failure !== undefined) return tell(failure)
      told.add(tell)
      return Effect.sync(() => void told.delete(tell))
    })
  }
}

/**
 * The last commit on which the work of a fiber depends, if this work waits for the disk only at its end
 * (`Synced.ts`). Undefined if each read and each transaction waits.
 */
export const neededSoFar: Context.Reference<{ commit: number } | undefined> = Context.Reference(
  "acme/engine/sql/CommitSync/neededSoFar",
  { defaultValue: (): { commit: number } | undefined => undefined }
)
