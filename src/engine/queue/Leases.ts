import * as Effect from "effect/Effect"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentSeconds, lifeMillis } from "../Time.ts"
import type { JobId } from "./Job.ts"
import type { Job } from "./Job.ts"
import * as jobLeases from "./JobLeases.ts"
import { renews } from "./Owner.ts"

/*
 * A live process renews its leases. Others do not trust the time on a lease: they watch whether the row changes. If it
 * has not changed for as long as a lease lasts, by the clock of the process that watches, its owner is dead. So it does
 * not matter which clock is wrong, or is set meanwhile.
 */

/** How many seconds ahead of its owner's clock a lease ends. */
export const leaseSeconds = 10

const renewEveryMillis = 3000
/**
 * A process that has not looked for this long was asleep or blocked. It does not know which leases were renewed
 * meanwhile.
 */
const absentMillis = 5000
/** How long the row of a live owner may stay unchanged. */
const silentMillis = 9000
/** Earlier versions did not renew leases: they ended by the clock, and none was longer than this. */
const longestFixedSeconds = 3600

/** An attempt that holds its row. */
export interface Holding {
  readonly job: Job
  /** When the row was last known to belong to it, in milliseconds of its process's life. */
  heldAt: number
  /** Up to when its time has been counted. */
  spentAt: number
}

/** The whole seconds that an attempt has spent since the last count. */
export const spentSince = ({ spentAt }: Pick<Holding, "spentAt">, life: number): number =>
  Math.max(0, Math.floor((life - spentAt) / 1000))

/** The leases of one process, and its observations of the leases of others. */
export const make = <H extends Holding>(of: {
  readonly owner: string
  /** Whether an owner is known to be gone. */
  readonly isGone: (owner: string) => boolean
  readonly holdings: ReadonlySet<H>
}) => {
  let renewedAt = 0
  /** Since when a renewal has been under way without an answer. */
  let unansweredSince: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let seen = new Map<JobId, { readonly row: jobLeases.Held; readonly since: number }>()

  const isDead = (row: jobLeases.Held, since: number, life: number, now: number): boolean =>
    of.isGone(row.owner) || (renews(row.owner)
      ? life - since >= silentMillis
      : row.leaseUntil < now || row.leaseUntil > now + longestFixedSeconds)

  return {
    /** Renews the leases of this process when it is time. Answers the attempts whose rows it has lost. */
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
      const renewed = yield* jobLeases.renew({
        owner: of.owner,
        until,
        held: counted.map(([{ job }, spent]) => [job.id, job.attempts, spent])
      })
      const left: Array<H> = []
      for (const [one, spent] of counted) {
        if (renewed.has(one.job.id)) {
          one.heldAt = life
          one.spentAt += spent * 1000
        } else left.push(one)
      }
      const locked = yield* jobLeases.stillHeld(of.owner, left.map(({ job }) => job))
      unansweredSince = undefined
      // A row that was locked is tried again in a second: others wait for it to change, too.
      if (locked.size === 0) renewedAt = life
      return left.filter(({ job }) => !locked.has(job.id))
    }),
    /** Whether another process may hold the row of an attempt by now, because no renewal can be written. */
    isDoubtful: ({ heldAt }: H, life: number): boolean =>
      unansweredSince !== undefined && life - unansweredSince >= renewEveryMillis && life - heldAt >= silentMillis,
    /** Takes rows back from dead owners. Answers how many. */
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
