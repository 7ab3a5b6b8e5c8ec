import * as Effect from "effect/Effect"
import { beyondSafe, int, packedUuid, rows, text, uuid } from "../sql/Column.ts"
import { all, lenient } from "../sql/Query.ts"
import { select, statement } from "../sql/Statement.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, currentSeconds, lifeMillis } from "../Time.ts"
import type { JobId } from "./Job.ts"
import { periodicKey } from "./Job.ts"

/*
 * Corrects due times, so that a clock that was wrong for a while, here or on another host, delays no job once it is
 * right again.
 */

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
       SELECT id FROM jobs WHERE kind IN (SELECT ${at(0, "text")} FROM ${each(":kinds")})
         AND dedup_key = '${periodicKey}' AND ${aside("status")} = 'ready' AND ${aside("run_at")} > :now) AND ${
      aside("status")
    } = 'ready' RETURNING id`
})

const lookAgainStatement = statement({
  name: "job_look_again",
  params: { now: int, kind: text() },
  row: { id },
  sql: () =>
    `UPDATE jobs SET run_at = :now, updated_at = :now WHERE status = 'ready' AND kind = :kind AND run_at > :now
     RETURNING id`
})

/**
 * Returns waiting rows that were written later than now, and waiting rows that are due later than `beyond`, up to
 * `limit` of each.
 */
const ahead = (params: { readonly now: number; readonly beyond: number; readonly limit: number }) =>
  lenient(aheadStatement, params)

/** Moves the due times of waiting rows whose due time has not changed in the meantime. Returns how many were moved. */
const move = (now: number, moves: ReadonlyArray<readonly [id: JobId, before: number, due: number]>) =>
  Effect.map(
    all(moveStatement, { now, moves: moves.map(([id, before, due]) => [packedUuid(id), before, due]) }),
    (moved) => moved.length
  )

/** Makes the waiting rows of periodic kinds due now. */
export const bringForward = (now: number, kinds: ReadonlyArray<string>) =>
  Effect.asVoid(all(bringForwardStatement, { now, kinds: kinds.map((kind) => [kind]) }))

/** Makes the waiting rows of a kind due now. */
export const lookAgain = (now: number, kind: string) => Effect.asVoid(all(lookAgainStatement, { now, kind }))

/**
 * Returns how many seconds ahead a kind can ask for its next run, or `undefined` for a kind that this process does not
 * run.
 */
export type Reach = (kind: string) => { readonly seconds: number; readonly periodic: boolean } | undefined

/**
 * Returns the corrected due time of a row. A row of an unknown kind keeps its due time. If a row was written some
 * seconds in the future, periodic work is due at once, and other work is due as many seconds earlier. If a row is due
 * later than its kind can have asked for, it is due now.
 */
const dueAgain = (
  row: { readonly kind: string; readonly runAt: number; readonly updatedAt: number },
  now: number,
  reach: Reach
): number => {
  const known = reach(row.kind)
  if (known === undefined) return row.runAt
  const lead = Math.max(0, row.updatedAt - now)
  // An additional run does no harm to periodic work, and that work may have to correct what the wrong time caused.
  if (lead > 0 && known.periodic) return Math.min(row.runAt, now)
  const due = row.runAt - lead
  return due > now + known.seconds ? now : due
}

const mostMoved = 500

/** Finds rows with wrong due times and corrects them. Returns their number. */
export const correct = Effect.fnUntraced(function*(reach: Reach, shortestReach: number) {
  const now = yield* currentSeconds
  const found = yield* ahead({ now, beyond: now + shortestReach, limit: mostMoved })
  const moves = found.flatMap((row) => {
    const due = dueAgain(row, now, reach)
    return due === row.runAt ? [] : [[row.id, row.runAt, due] as const]
  })
  if (moves.length === 0) return 0
  const rows_updated = yield* move(now, moves)
  if (rows_updated > 0) yield* emit("db_job_times_corrected", { rows_updated })
  return rows_updated
})

const steppedMillis = 2000

/**
 * Makes an effect that reports whether the clock was set while this process ran, and by how many milliseconds. The
 * effect compares the clock with the time since the start of the process ({@link lifeMillis}).
 */
export const makeStep = Effect.gen(function*() {
  const offset = Effect.zipWith(currentMillis, lifeMillis, (now, life) => now - life)
  let before = yield* offset
  return Effect.gen(function*() {
    const now = yield* offset
    const step = now - before
    before = now
    if (Math.abs(step) < steppedMillis) return 0
    yield* emit("server_clock_stepped", { offset_ms: step })
    return step
  })
})
