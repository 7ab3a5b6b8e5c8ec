import * as Effect from "effect/Effect"
import type { JobId } from "../../engine/queue/Job.ts"
import { int, rows, text, uuid } from "../../engine/sql/Column.ts"
import { perFilters } from "../../engine/sql/Filters.ts"
import { lenient } from "../../engine/sql/Query.ts"
import { statement } from "../../engine/sql/Statement.ts"

/* The errors of jobs that have failed or wait for another attempt. */

const errorsStatement = perFilters(["kind"], (used) =>
  statement({
    name: "job_errors",
    params: { kind: text(), now: int, limit: int },
    row: { kind: text(), error: text(), jobs: int, id: uuid<JobId>() },
    sql: ({ dialect, idText }) =>
      `SELECT j.kind AS "kind", j.last_error AS "error", count(*) AS "jobs",
         ${dialect === "postgres" ? `CAST(min(${idText("j.id")}) AS uuid)` : "min(j.id)"} AS "id"
       FROM jobs j WHERE ${used.length > 0 ? "j.kind = :kind AND " : ""}j.last_error IS NOT NULL
         AND (j.status = 'failed' OR j.status = 'ready' AND j.run_at > :now)
       GROUP BY j.kind, j.last_error ORDER BY count(*) DESC, j.kind, j.last_error LIMIT :limit`
  }))

// Each element of `errors` is an error as it is stored.
const alikeStatement = statement({
  name: "job_alike",
  params: { kind: text(), errors: rows, now: int, limit: int },
  row: { id: uuid<JobId>() },
  sql: ({ at, each }) =>
    `SELECT j.id AS "id" FROM jobs j WHERE j.kind = :kind
       AND (j.status = 'failed' OR j.status = 'ready' AND j.run_at > :now)
       AND j.last_error IN (SELECT ${at(0, "text")} FROM ${each(":errors")}) ORDER BY j.id LIMIT :limit`
})

/** An error as it is stored, with the number of jobs that have it and the id of the oldest of them. */
export type JobError = Effect.Success<ReturnType<typeof errorsOf>>[number]

/** Returns the errors that most jobs have, of one kind or of all kinds. */
export const errorsOf = (kind: string | undefined, now: number, limit: number) =>
  lenient(errorsStatement({ kind }), { kind: kind ?? "", now, limit })

/** Returns the oldest jobs of a kind that have one of these errors. */
export const alike = (kind: string, errors: ReadonlyArray<string>, now: number, limit: number) =>
  errors.length === 0 ? Effect.succeed<ReadonlyArray<JobId>>([]) : Effect.map(
    lenient(alikeStatement, { kind, errors: errors.map((error) => [error]), now, limit }),
    (found) => found.map(({ id }) => id)
  )
