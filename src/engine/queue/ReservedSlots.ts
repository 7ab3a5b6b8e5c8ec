import * as Effect from "effect/Effect"
import type { StorageFailed } from "../sql/Database.ts"
import { Database, ifUndone } from "../sql/Database.ts"
import { lifeMillis } from "../Time.ts"
import type { Job } from "./Job.ts"

/**
 * A slot that is reserved for a job which is about to be written as already claimed (docs/decisions/wake-up.md, "Jobs
 * that begin with their commit").
 */
export interface ReservedSlot {
  /** The owner that the row names. */
  readonly owner: string
  /** Begins the job's attempt. Call it after the commit. */
  readonly begin: (job: Job) => Effect.Effect<void>
  /** Gives the slot back. Has no effect the second time, or after `begin`. */
  readonly giveBack: Effect.Effect<void>
}

/** Takes a slot for a job; `undefined` if the job has to wait for its turn. */
export type Offer = (kind: string, share: string) => ReservedSlot | undefined

/** The connection between the code that enqueues jobs and the runner of the process, if there is one. */
export interface ReservedSlots {
  /** Sets the offer of the runner; none at first. */
  readonly offer: (offer: Offer | undefined) => void
  /**
   * A slot for a job that the open transaction enqueues. It is given back when that transaction is undone, and before
   * its body runs once more. `undefined` outside of a transaction.
   */
  readonly take: (kind: string, share: string) => Effect.Effect<ReservedSlot | undefined>
}

/** Makes one without an offer. */
export const make = (): ReservedSlots => {
  let offered: Offer | undefined
  return {
    offer: (offer) => void (offered = offer),
    take: (kind, share) =>
      Effect.suspend(() => {
        const reserved = offered?.(kind, share)
        if (reserved === undefined) return Effect.succeed(undefined)
        return Effect.flatMap(
          ifUndone(reserved.giveBack),
          (isPlanned) => isPlanned ? Effect.succeed(reserved) : Effect.as(reserved.giveBack, undefined)
        )
      })
  }
}

/** The offer of a runner. */
export const offerOf = (runner: {
  readonly owner: string
  /** Takes a slot. */
  readonly reserve: (kind: string, share: string) => boolean
  readonly release: (slot: Pick<Job, "kind" | "share">) => Effect.Effect<void>
  readonly isDraining: () => boolean
  /** Begins an attempt, which gives the slot back at its end. */
  readonly begin: (job: Job, heldAt: number) => Effect.Effect<void>
  /** Makes the row ready again. */
  readonly handBack: (job: Job, spentAt: number) => Effect.Effect<unknown, StorageFailed, Database>
  readonly database: Database["Service"]
}): Offer =>
(kind, share) => {
  if (runner.isDraining() || !runner.reserve(kind, share)) return undefined
  const handBack = (job: Job, life: number) =>
    Effect.provideService(runner.handBack(job, life), Database, runner.database)
  let isKept = true
  const giveBack = Effect.suspend(() => {
    if (!isKept) return Effect.void
    isKept = false
    return runner.release({ kind, share })
  })
  return {
    owner: runner.owner,
    begin: (job) =>
      Effect.flatMap(lifeMillis, (life) => {
        // The runner stops, so the row is made ready again. Otherwise it would stay claimed until another process finds
        // this one dead.
        if (runner.isDraining()) return Effect.andThen(Effect.ignore(handBack(job, life)), giveBack)
        isKept = false
        return runner.begin(job, life)
      }),
    giveBack
  }
}
