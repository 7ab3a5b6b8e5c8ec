import * as Effect from "effect/Effect"
import { int, packedUuid, rows, text } from "../sql/Column.ts"
import { reached } from "../sql/Guard.ts"
import { lenient, partitioned } from "../sql/Query.ts"
import { select, statement } from "../sql/Statement.ts"
import type { Claimant, Job, JobId } from "./Job.ts"
import { endOf, groupOf, job, jobMoves, startOf } from "./Job.ts"

/* Decides which rows a runner claims, and claims them. */

const claimed = { now: int, owner: text(), until: int, limit: int, kinds: rows }

/**
 * No job can have made this many attempts, so a larger count is wrong. Such a count is not incremented, because the sum
 * might not fit into an integer of the database engine.
 */
const mostAttempts = 1_000_000

const claimOf = (ids: string): string =>
  `UPDATE jobs SET status = ${
    reached(jobMoves.claim)
  }, lease_owner = :owner, updated_at = :now, lease_until = :until, joined = 0,
     attempts = CASE WHEN attempts BETWEEN 0 AND ${mostAttempts} THEN attempts + 1 ELSE ${mostAttempts} END
   WHERE id IN (${ids}) RETURNING ${select(job)}`

const claimStatement = statement({
  name: "job_claim",
  params: claimed,
  row: job,
  sql: ({ at, indexedBy, each, skipLocked }) =>
    claimOf(
      `SELECT id FROM jobs ${indexedBy("jobs_due")} WHERE status = 'ready' AND run_at <= :now
         AND kind IN (SELECT ${at(0, "text")} FROM ${each(":kinds")}) ORDER BY run_at, id LIMIT :limit ${skipLocked}`
    )
})

const head = { id: job.id, share: text(), runAt: int }

const dueStatement = statement({
  name: "job_due_rows",
  params: { kind: text(), now: int, limit: int },
  row: head,
  sql: ({ indexedBy }) =>
    `SELECT id AS "id", share AS "share", run_at AS "runAt" FROM jobs ${indexedBy("jobs_due_of_kind")}
     WHERE status = 'ready' AND kind = :kind AND run_at <= :now ORDER BY run_at, id LIMIT :limit`
})

/** Selects the first row of a kind in the order of `jobs_shares`, or one column of it. */
const firstOf = (columns: string, where: string): string =>
  `(SELECT ${columns} FROM jobs WHERE status = 'ready' AND kind = :kind AND ${where} ORDER BY share, run_at, id LIMIT 1)`

// This reads only the oldest row of each share, and goes from one share to the next by the index, however many rows a
// share has.
const headsStatement = statement({
  name: "job_heads",
  params: { kind: text(), from: text(), below: text(), limit: int },
  row: head,
  sql: ({ dialect }) => {
    const columns = "j.id, j.share, j.run_at"
    const next = "share > head.share AND share < :below"
    const others = dialect === "postgres"
      ? `SELECT ${columns} FROM head CROSS JOIN LATERAL ${firstOf("id, share, run_at", next)} AS j`
      : `SELECT ${columns} FROM head CROSS JOIN jobs j WHERE j.id = ${firstOf("id", next)}`
    return `SELECT id AS "id", share AS "share", run_at AS "runAt" FROM (
       WITH RECURSIVE head (id, share, run_at) AS (
         SELECT ${columns} FROM jobs j WHERE j.id = ${firstOf("id", "share >= :from AND share < :below")}
         UNION ALL ${others})
       SELECT id, share, run_at FROM head LIMIT :limit) AS heads`
  }
})

// This reads one row of each group, and goes from one group to the next by the index.
const groupsStatement = statement({
  name: "job_groups",
  params: { kind: text() },
  row: { share: text() },
  sql: ({ dialect }) => {
    const end = dialect === "postgres"
      ? "split_part(head.share, '/', 1) || '0'"
      : "substr(head.share, 1, max(instr(head.share, '/') - 1, 0)) || '0'"
    const next = `share >= ${end}`
    const others = dialect === "postgres"
      ? `SELECT j.share FROM head CROSS JOIN LATERAL ${firstOf("share", next)} AS j`
      : `SELECT j.share FROM head CROSS JOIN jobs j WHERE j.id = ${firstOf("id", next)}`
    return `SELECT share AS "share" FROM (
       WITH RECURSIVE head (share) AS (
         SELECT j.share FROM jobs j WHERE j.id = ${firstOf("id", "share >= ''")} UNION ALL ${others})
       SELECT share FROM head) AS heads`
  }
})

const claimTheseStatement = statement({
  name: "job_claim_these",
  params: { now: int, owner: text(), until: int, ids: rows },
  row: job,
  sql: ({ aside, at, each, skipLocked }) =>
    claimOf(
      `SELECT id FROM jobs WHERE id IN (SELECT ${at(0, "uuid")} FROM ${each(":ids")})
         AND ${aside("status")} = 'ready' AND ${aside("run_at")} <= :now ${skipLocked}`
    )
})

const claimedBy = partitioned<typeof claimed, typeof job>

/** A job whose row cannot be read is claimed too, so that it can be given up properly. */
const inOrder = ({ readable, unreadable }: Effect.Success<ReturnType<typeof claimedBy>>): ReadonlyArray<Job> =>
  [...readable, ...unreadable.map(([one, error]): Job => ({ ...one, unreadable: error }))].sort((one, other) =>
    one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1)
  )

/** Makes the statements that claim the oldest due rows, for all declared kinds. */
export const claiming = (every: ReadonlyArray<string>) => {
  // Kinds that are not wanted may have many rows. So each wanted kind is read separately by the index, and the oldest
  // rows of all are claimed.
  const claimAmongStatement = statement({
    name: "job_claim_among",
    params: claimed,
    row: job,
    sql: ({ at, each, skipLocked }) => {
      const arms = every.map((kind) =>
        `SELECT * FROM (SELECT id, run_at FROM jobs WHERE status = 'ready' AND kind = '${kind}' AND run_at <= :now
         AND '${kind}' IN (SELECT ${at(0, "text")} FROM ${each(":kinds")})
         ORDER BY run_at, id LIMIT :limit ${skipLocked}) AS ${kind}`
      )
      return claimOf(`SELECT id FROM (${arms.join(" UNION ALL ")}) AS due ORDER BY run_at, id LIMIT :limit`)
    }
  })

  return {
    /**
     * Claims the oldest due rows of the given kinds in one guarded write. `among` means that other, unwanted kinds may
     * have many due rows.
     */
    claim: (
      { among, kinds, ...params }: Claimant & {
        readonly limit: number
        readonly kinds: ReadonlyArray<string>
        readonly among?: boolean
      }
    ) =>
      Effect.map(
        claimedBy(among === true ? claimAmongStatement : claimStatement, {
          ...params,
          kinds: kinds.map((kind) => [kind])
        }),
        inOrder
      )
  }
}

/** Returns the oldest due rows of a kind. */
export const due = (params: { readonly kind: string; readonly now: number; readonly limit: number }) =>
  lenient(dueStatement, params)

/** Returns the groups of a kind that have waiting rows, due or not, each once. */
export const groups = (kind: string) =>
  Effect.map(lenient(groupsStatement, { kind }), (found) => found.map(({ share }) => groupOf(share)))

/**
 * Returns the oldest waiting row of each share of a group, beginning with the share `from`, if there is one. The row
 * need not be due.
 */
export const heads = ({ from, group, kind, limit }: {
  readonly kind: string
  readonly group: string
  readonly from: string | undefined
  readonly limit: number
}) => lenient(headsStatement, { kind, from: from ?? startOf(group), below: endOf(group), limit })

/** Claims those of the given rows that are still ready and due. */
export const claimThese = ({ ids, ...claimant }: Claimant & { readonly ids: ReadonlyArray<JobId> }) =>
  Effect.map(partitioned(claimTheseStatement, { ...claimant, ids: ids.map((id) => [packedUuid(id)]) }), inOrder)
