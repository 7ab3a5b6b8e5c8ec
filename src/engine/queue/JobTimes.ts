import * as Effect from "effect/Effect"
import { beyondSafe, int, packedUuid, rows, text, uuid } from "../sql/Column.ts"
import { all, lenient } from "../sql/Query.ts"
import { select, statement } from "../sql/Statement.ts"
import type { JobId } from "./Job.ts"
import { periodicKey } from "./Job.ts"

/* Corrects the due times of waiting rows after a clock was wrong. */

const id = uuid<JobId>()
const times = { id, kind: text(), runAt: int, updatedAt: int }

const aheadStatement = statement({
  name: "job_ahead",
  params: { now: int, beyond: int, limit: int },
  row: times,
  sql: ({ indexedBy }) =>
    `SELECT ${select(times)} FROM (SELECT * FROM (SELECT id, kind, run_at, updated_at FROM jobs
         WHERE status = 'ready' AND updated_at > :now ORDER BY updated_at DESC LIMIT :limit) AS stamped
       UNION SELECT * FROM (SELECT id, kind, run_at, updated_at FROM jobs ${indexedBy("jobs_due")}
         WHERE status = 'ready' AND run_at > :beyond ORDER BY run_at DESC LIMIT :limit) AS late) AS ahead`
})

const moveStatement = statement({
  name: "job_move",
  params: { now: int, moves: rows },
  row: { id },
  sql: ({ aside, at, each }) =>
    `UPDATE jobs SET run_at = move.due, updated_at = :now
     FROM (SELECT ${at(0, "uuid")} AS job, ${at(1, "int")} AS before, ${at(2, "int")} AS due FROM ${
      each(":moves")
    }) AS move
     WHERE id = move.job AND (${aside("run_at")} = move.before OR ${beyondSafe(aside("run_at"))}) AND ${
      aside("status")
    } = 'ready' RETURNING id`
})

const bringForwardStatement = statement({
  name: "job_bring_forward",
  params: { now: int, kinds: rows },
  row: { id },
  sql: ({ aside, at, each }) =>
    `UPDATE jobs SET run_at = :now, updated_at = :now WHERE id IN (
       SELECT id FROM jobs WHERE ${aside("status")} IN ('ready') AND run_at > :now AND dedup_key = '${periodicKey}'
         AND kind IN (SELECT ${at(0, "text")} FROM ${each(":kinds")})) AND ${aside("status")} = 'ready' RETURNING id`
})

const lookAgainStatement = statement({
  name: "job_look_again",
  params: { now: int, kind: text() },
  row: { id },
  sql: () =>
    `UPDATE jobs SET run_at = :now, updated_at = :now WHERE status = 'ready' AND kind = :kind AND run_at > :now
     RETURNING id`
})

/** Waiting rows with a time of writing later than now, or due later than `beyond`; up to `limit` of each. */
export const ahead = (params: { readonly now: number; readonly beyond: number; readonly limit: number }) =>
  lenient(aheadStatement, params)

/** Moves the due times of waiting rows whose due time has not changed meanwhile. Answers how many were moved. */
export const move = (now: number, moves: ReadonlyArray<readonly [id: JobId, before: number, due: number]>) =>
  Effect.map(
    all(moveStatement, { now, moves: moves.map(([id, before, due]) => [packedUuid(id), before, due]) }),
    (moved) => moved.length
  )

/** Makes the waiting rows of periodic kinds due now. */
export const bringForward = (now: number, kinds: ReadonlyArray<string>) =>
  Effect.asVoid(all(bringForwardStatement, { now, kinds: kinds.map((kind) => [kind]) }))

/** Makes the waiting rows of a kind due now. */
export const lookAgain = (now: number, kind: string) => Effect.asVoid(all(lookAgainStatement, { now, kind }))
