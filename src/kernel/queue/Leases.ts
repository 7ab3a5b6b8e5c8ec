import { Clock, Effect } from "effect"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { emit } from "../telemetry/EventLog.ts"
import { currentSeconds } from "../Time.ts"
import type { JobId } from "./Job.ts"
import type { Job } from "./Job.ts"
import * as jobLeases from "./JobLeases.ts"
import { renews } from "./Owner.ts"

/*
 * Who lives renews its leases. Whether a lease is renewed is seen, not read: a row that has stayed as it is for as long as a
 * lease lasts, by the clock of whoever looks, is nobody's. So it does not matter whose clock is wrong, or set meanwhile.
 */

/** How far ahead of its owner's clock a lease ends. */
export const leaseSeconds = 10

const renewEveryMillis = 3000
/** Whoever has not looked for so long has slept, or been kept: he cannot say what was renewed meanwhile. */
const absentMillis = 5000
/** So long a row may stay as it is. */
const silentMillis = 9000
/** Leases of versions that did not renew them ended by the clock, and none was longer. */
const longestFixedSeconds = 3600

/** An attempt that has its row. */
export interface Holding {
  readonly job: Job
  /** When the row was known to be its own last, in milliseconds of its process's life. */
  heldAt: number
  /** Up to when the time it takes has been counted. */
  spentAt: number
}

/** Milliseconds of the process's life: waits and bounds are measured by them, whatever the clock says meanwhile. */
export const lifeMillis: Effect.Effect<number> = Effect.map(
  Clock.currentTimeNanos,
  (nanos) => Number(nanos / 1_000_000n)
)

/** Whole seconds an attempt has spent since they were last counted. */
export const spentSince = ({ spentAt }: Pick<Holding, "spentAt">, life: number): number =>
  Math.max(0, Math.floor((life - spentAt) / 1000))

/** The leases of one process, and what it sees of those of others. */
export const make = <H extends Holding>(of: {
  readonly owner: string
  /** Whether an owner is known to be gone. */
  readonly isGone: (owner: string) => boolean
  readonly holdings: ReadonlySet<H>
}) => {
  let renewedAt = 0
  /** Since when a renewal has been asked for and not been answered. */
  let unansweredSince: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let seen = new Map<JobId, { readonly row: jobLeases.Held; readonly since: number }>()

  const isDead = (row: jobLeases.Held, since: number, life: number, now: number): boolean =>
    of.isGone(row.owner) || (renews(row.owner)
      ? life - since >= silentMillis
      : row.leaseUntil < now || row.leaseUntil > now + longestFixedSeconds)

  return {
    /** Renews what this process holds, when it is time; answers what it holds no longer. */
    renew: Effect.gen(function*() {
      const life = yield* lifeMillis
      const held = [...of.holdings]
      if (held.length === 0) {
        renewedAt = life
        unansweredSince = undefined
        return []
      }
      if (life - renewedAt < renewEveryMillis && unansweredSince === undefined) return []
      unansweredSince ??= life
      const counted = held.map((one) => [one, spentSince(one, life)] as const)
      const until = (yield* currentSeconds) + leaseSeconds
      const kept = yield* jobLeases.renew({
        owner: of.owner,
        until,
        held: counted.map(([{ job }, spent]) => [job.id, job.attempts, spent])
      })
      unansweredSince = undefined
      renewedAt = life
      const lost: Array<H> = []
      for (const [one, spent] of counted) {
        if (kept.has(one.job.id)) {
          one.heldAt = life
          one.spentAt += spent * 1000
        } else lost.push(one)
      }
      return lost
    }),
    /** Whether somebody else may have the row of an attempt by now, since nothing can be written. */
    isDoubtful: ({ heldAt }: H, life: number): boolean =>
      unansweredSince !== undefined && life - unansweredSince >= renewEveryMillis && life - heldAt >= silentMillis,
    /** Takes rows back from the dead; answers how many. */
    takeBack: Effect.gen(function*(): Effect.fn.Return<number, StorageFailed, Database> {
      const rows = yield* jobLeases.running
      const life = yield* lifeMillis
      const now = yield* currentSeconds
      if (life - lookedAt > absentMillis) seen = new Map()
      lookedAt = life
      const next: typeof seen = new Map()
      const dead: Array<jobLeases.Held> = []
      for (const row of rows) {
        const before = seen.get(row.id)
        const isSame = before !== undefined && before.row.owner === row.owner &&
          before.row.attempts === row.attempts && before.row.leaseUntil === row.leaseUntil
        const since = isSame ? before.since : life
        next.set(row.id, { row, since })
        if (isDead(row, since, life, now)) dead.push(row)
      }
      seen = next
      if (dead.length === 0) return 0
      const rows_updated = yield* jobLeases.reclaim(now, dead)
      if (rows_updated > 0) yield* emit("db_job_leases_reclaimed", { rows_updated })
      return rows_updated
    })
  }
}
