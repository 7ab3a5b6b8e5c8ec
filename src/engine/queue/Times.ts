import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, currentSeconds, lifeMillis } from "../Time.ts"
import * as jobTimes from "./JobTimes.ts"

/*
 * Corrects due times, so that a clock that was wrong for a while, here or on another host, delays nothing once it is
 * right.
 */

/** How far ahead a kind can ask for its next run, in seconds; `undefined` for a kind that is not run here. */
export type Reach = (kind: string) => { readonly seconds: number; readonly periodic: boolean } | undefined

/**
 * The corrected due time of a row. If the row was written in the future, its due time moves back by the same lead. If
 * the row is due later than its kind can have asked for, it is due now.
 */
const dueAgain = (
  row: { readonly kind: string; readonly runAt: number; readonly updatedAt: number },
  now: number,
  reach: Reach
): number => {
  const known = reach(row.kind)
  if (known === undefined) return row.runAt
  const lead = Math.max(0, row.updatedAt - now)
  // An additional run does not delay periodic work, and that work may have to correct what the wrong time caused.
  if (lead > 0 && known.periodic) return Math.min(row.runAt, now)
  const due = row.runAt - lead
  return due > now + known.seconds ? now : due
}

const mostMoved = 500

/** Looks for rows with wrong due times and corrects them. Answers how many. */
export const correct = Effect.fnUntraced(function*(reach: Reach, shortestReach: number) {
  const now = yield* currentSeconds
  const found = yield* jobTimes.ahead({ now, beyond: now + shortestReach, limit: mostMoved })
  const moves = found.flatMap((row) => {
    const due = dueAgain(row, now, reach)
    return due === row.runAt ? [] : [[row.id, row.runAt, due] as const]
  })
  if (moves.length === 0) return 0
  const rows_updated = yield* jobTimes.move(now, moves)
  if (rows_updated > 0) yield* emit("db_job_times_corrected", { rows_updated })
  return rows_updated
})

const steppedMillis = 2000

/**
 * Reports that the clock was set while this process ran, and by how many milliseconds. The clock is compared with the
 * process's life ({@link lifeMillis}).
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
