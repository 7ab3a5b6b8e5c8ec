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

/** Writes everything that was committed so far to the disk, and calls back. Runs once at a time. */
export type Sync = (ended: (failure: Error | null) => void) => void

/**
 * Makes one sync cover the commits of many callers. As many syncs run at a time as there are functions in `syncs`. A
 * sync begins with the first commit that no running sync covers. If it had to wait for the end of another sync, a commit
 * would wait for half of that one too, on average. A commit waits only if all syncs are running.
 *
 * A failed sync is final: the system may have dropped the data that it could not write, and a later sync would succeed
 * without these data. So from then on every caller gets the failure.
 *
 * `othersCommits` returns a value that changes when another connection has committed. `slow` gets the milliseconds of
 * each sync, and reports a sync that took too long.
 */
export const makeCommitSync = (options: {
  readonly syncs: ReadonlyArray<Sync>
  readonly othersCommits: () => unknown
  readonly slow: (elapsed: number) => Effect.Effect<void>
}): CommitSync => {
  // Commit 1 stands for everything that the database contains at startup. A killed process may have left it unsynced.
  let last = 1
  let begun = 0 // the last commit that is covered by a sync which has begun
  let synced = 0
  let others: unknown
  let failure: Error | undefined
  const idle = [...options.syncs]
  const waiting = new Set<Waiter>()
  const told = new Set<(reason: Error) => void>()

  const fail = () => new SqlError({ cause: failure, message: "the sync failed" })

  /** Begins a sync, unless one that has begun covers the commit, or all are running. */
  const begin = (needed: number) => {
    const sync = needed > begun ? idle.pop() : undefined
    if (sync === undefined) return
    const commit = last
    begun = commit
    const begunAt = performance.now()
    sync((failed) => {
      idle.push(sync)
      if (failure !== undefined) return
      if (failed === null) synced = Math.max(synced, commit)
      else failure = failed
      let result: Effect.Effect<void, SqlError> = options.slow(performance.now() - begunAt)
      for (const one of waiting) {
        if (failure === undefined && one.commit > synced) continue
        waiting.delete(one)
        one.resume(failure === undefined ? result : fail())
        result = Effect.void // only one of the waiters reports a slow sync
      }
      if (failure !== undefined) { for (const tell of told) tell(failure) }
      else for (const one of waiting) begin(one.commit)
    })
  }

  const upTo = (commit: number) =>
    Effect.suspend(() => {
      if (failure !== undefined) return fail()
      if (commit <= synced) return Effect.void
      return Effect.callback<void, SqlError>((resume) => {
        const one: Waiter = { commit, resume }
        waiting.add(one)
        begin(commit)
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
