import * as Effect from "effect/Effect"
import { beyondSafe, int, packedUuid, rows, text, uuid } from "../sql/Column.ts"
import type { Database, StorageFailed } from "../sql/Database.ts"
import { leaving, reached } from "../sql/Guard.ts"
import { all, first, lenient } from "../sql/Query.ts"
import { statement } from "../sql/Statement.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentSeconds, lifeMillis } from "../Time.ts"
import type { Job, JobId } from "./Job.ts"
import { jobMoves, spentAnd } from "./Job.ts"
import { renews } from "./Workers.ts"

/*
 * A live process renews its leases. Other processes do not trust the time on a lease: they watch whether the row
 * changes. If the row has not changed for as long as a lease lasts, by the clock of the watching process, its owner is
 * dead. So it does not matter whether a clock is wrong or is set in the meantime.
 */

const id = uuid<JobId>()

// Each row of `held` is an id, the attempts, and the seconds spent since the last renewal. A locked row is skipped, so
// that the other rows do not wait for it.
const renewStatement = statement({
  name: "job_renew",
  params: { owner: text(), until: int, held: rows },
  row: { id },
  sql: ({ aside, at, each, skipLocked }) =>
    `UPDATE jobs SET lease_until = :until, spent_seconds = ${spentAnd("held.spent")}
     FROM (SELECT ${at(0, "uuid")} AS job, ${at(1, "int")} AS attempt, ${at(2, "int")} AS spent FROM ${
      each(":held")
    }) AS held
     WHERE id = held.job AND attempts = held.attempt AND ${aside("status")} = 'running' AND lease_owner = :owner
       AND id IN (SELECT id FROM jobs WHERE id IN (SELECT ${at(0, "uuid")} FROM ${each(":held")}) ${skipLocked})
     RETURNING id`
})

const stillHeldStatement = statement({
  name: "job_still_held",
  params: { owner: text(), held: rows },
  row: { id },
  sql: ({ aside, at, each }) =>
    `SELECT id FROM jobs JOIN (SELECT ${at(0, "uuid")} AS job, ${at(1, "int")} AS attempt FROM ${
      each(":held")
    }) AS held ON id = held.job
     WHERE attempts = held.attempt AND ${aside("status")} = 'running' AND lease_owner = :owner`
})

const runningStatement = statement({
  name: "job_running",
  params: {},
  row: { id, owner: text(), attempts: int, leaseUntil: int },
  sql: () =>
    `SELECT id AS "id", coalesce(lease_owner, '') AS "owner", attempts AS "attempts", coalesce(lease_until, 0) AS "leaseUntil"
     FROM jobs WHERE status = 'running'`
})

const reclaimStatement = statement({
  name: "job_reclaim",
  params: { now: int, dead: rows },
  row: { id },
  // If a stalled process has locked a row in its transaction, the row is skipped this time, so that the other rows do
  // not wait for it.
  sql: ({ aside, at, each, skipLocked }) =>
    `UPDATE jobs SET status = ${
      reached(jobMoves.reclaim)
    }, run_at = :now, lease_until = NULL, lease_owner = NULL, updated_at = :now
     FROM (SELECT ${at(0, "uuid")} AS job, ${at(1, "text")} AS owner, ${at(2, "int")} AS attempt, ${
      at(3, "int")
    } AS until
       FROM ${each(":dead")}) AS dead
     WHERE id = dead.job AND attempts = dead.attempt AND coalesce(lease_owner, '') = dead.owner
       AND (coalesce(lease_until, 0) = dead.until OR ${beyondSafe("lease_until")})
       AND ${leaving(jobMoves.reclaim, aside("status"))}
       AND id IN (SELECT id FROM jobs WHERE id IN (SELECT ${at(0, "uuid")} FROM ${each(":dead")}) ${skipLocked})
     RETURNING id`
})

const idsOf = (found: ReadonlyArray<{ readonly id: JobId }>): ReadonlySet<JobId> => new Set(found.map(({ id }) => id))

/**
 * Renews the leases of running attempts and adds the seconds spent since the last renewal. Returns the ids of the
 * renewed rows. Rows that are no longer held, and locked rows, are not among them.
 */
const renewRows = (params: {
  readonly owner: string
  readonly until: number
  readonly held: ReadonlyArray<readonly [id: JobId, attempts: number, spentSeconds: number]>
}) =>
  Effect.map(
    all(renewStatement, {
      ...params,
      held: params.held.map(([id, attempts, spent]) => [packedUuid(id), attempts, spent])
    }),
    idsOf
  )

/** Returns which of these attempts still hold their rows, locked or not. */
const stillHeld = (owner: string, held: ReadonlyArray<Pick<Job, "attempts" | "id">>) =>
  held.length === 0
    ? Effect.succeed<ReadonlySet<JobId>>(new Set())
    : Effect.map(
      all(stillHeldStatement, { owner, held: held.map(({ attempts, id }) => [packedUuid(id), attempts]) }),
      idsOf
    )

const takenStatement = statement({
  name: "job_taken",
  params: { id, attempts: int },
  row: { id },
  sql: ({ checked }) =>
    `SELECT id FROM jobs WHERE id = :id AND attempts > :attempts AND ${checked("status")} = 'running'`
})

/** Returns whether a later attempt of the same job runs. If so, this attempt stalled until its lease was taken away. */
export const isTaken = ({ attempts, id }: Pick<Job, "attempts" | "id">) =>
  Effect.map(first(takenStatement, { id, attempts }), (row) => row !== undefined)

/**
 * A row that a process holds: its owner (`""` if there is no owner) and its lease. Each change of the lease shows that
 * the owner is alive.
 */
export type Held = Effect.Success<typeof running>[number]

/** Returns every row that a process holds. */
export const running = lenient(runningStatement, {})

/** Makes these rows ready again, due now, if they have not changed. Returns how many were changed. */
export const reclaim = (now: number, dead: ReadonlyArray<Held>) =>
  Effect.map(
    all(reclaimStatement, {
      now,
      dead: dead.map(({ attempts, id, leaseUntil, owner }) => [packedUuid(id), owner, attempts, leaseUntil])
    }),
    (rows) => rows.length
  )

/** How many seconds ahead of its owner's clock a lease ends. */
export const leaseSeconds = 10

const renewEveryMillis = 3000
/**
 * A process that has not checked for this long was asleep or blocked. It does not know which leases were renewed in the
 * meantime.
 */
const absentMillis = 5000
/** How long the row of a live owner may stay unchanged. */
const silentMillis = 9000
/** Earlier versions did not renew leases. Their leases ended by the clock, and no lease was longer than this. */
const longestFixedSeconds = 3600

/** An attempt that holds its row. */
export interface Holding {
  readonly job: Job
  /** When the attempt was last known to hold the row, in milliseconds since the start of the process. */
  heldAt: number
  /**
   * The time up to which the duration of the attempt has been counted, in milliseconds since the start of the process.
   */
  spentAt: number
}

/** Returns the whole seconds that an attempt has spent since the last count. */
export const spentSince = ({ spentAt }: Pick<Holding, "spentAt">, life: number): number =>
  Math.max(0, Math.floor((life - spentAt) / 1000))

/** Makes the leases of one process, with its observations of other processes' leases. */
export const make = <H extends Holding>(of: {
  readonly owner: string
  /** Returns whether an owner is known to be gone. */
  readonly isGone: (owner: string) => boolean
  readonly holdings: ReadonlySet<H>
}) => {
  let renewedAt = 0
  /** Since when a renewal has been waiting for an answer. */
  let unansweredSince: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  let seen = new Map<JobId, { readonly row: Held; readonly since: number }>()

  const isDead = (row: Held, since: number, life: number, now: number): boolean =>
    of.isGone(row.owner) || (renews(row.owner)
      ? life - since >= silentMillis
      : row.leaseUntil < now || row.leaseUntil > now + longestFixedSeconds)

  return {
    /** Renews the leases of this process when they are due. Returns the attempts whose rows the process has lost. */
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
      const renewed = yield* renewRows({
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
      const locked = yield* stillHeld(of.owner, left.map(({ job }) => job))
      unansweredSince = undefined
      // A locked row is tried again in a second, because other processes wait for it to change.
      if (locked.size === 0) renewedAt = life
      return left.filter(({ job }) => !locked.has(job.id))
    }),
    /** Returns whether another process may hold the row of an attempt by now, because no renewal can be written. */
    isDoubtful: ({ heldAt }: H, life: number): boolean =>
      unansweredSince !== undefined && life - unansweredSince >= renewEveryMillis && life - heldAt >= silentMillis,
    /** Takes rows back from dead owners. Returns their number. */
    takeBack: Effect.gen(function*(): Effect.fn.Return<number, StorageFailed, Database> {
      const rows = yield* running
      const life = yield* lifeMillis
      const now = yield* currentSeconds
      if (life - lookedAt > absentMillis) seen = new Map()
      lookedAt = life
      const next: typeof seen = new Map()
      const dead: Array<Held> = []
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
      const rows_updated = yield* reclaim(now, dead)
      if (rows_updated > 0) yield* emit("db_job_leases_reclaimed", { rows_updated })
      return rows_updated
    })
  }
}
