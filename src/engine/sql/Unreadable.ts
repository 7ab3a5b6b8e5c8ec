import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EngineLog.ts"
import { count } from "../telemetry/EngineSeries.ts"
import { lifeMillis } from "../Time.ts"

/** A row that a statement has found but that cannot be decoded. `row` identifies it, such as `id 0190…, kind mail`. */
export interface Unreadable {
  readonly statement: string
  readonly row: string
  /** The columns that cannot be decoded, and what is wrong with each. This text contains no values. */
  readonly error: string
}

/**
 * Collects the rows that could not be read, for a surface that shows them beside a list. By default, nothing is
 * collected.
 */
const Noted = Context.Reference<((found: Unreadable) => void) | undefined>("acme/engine/sql/Unreadable/Noted", {
  defaultValue: () => undefined
})

/** Returns the result of an effect, and the rows that the effect could not read. Each row is listed once. */
export const noted = Effect.fnUntraced(function*<A, E, R>(self: Effect.Effect<A, E, R>) {
  const found = new Map<string, Unreadable>()
  const result = yield* Effect.provideService(self, Noted, (one) => found.set(`${one.row} ${one.error}`, one))
  const unreadable: ReadonlyArray<Unreadable> = [...found.values()]
  return [result, unreadable] as const
})

/** A loop or an operator may find the same row again and again. The row is logged once a minute. */
const silentMillis = 60_000
const mostRemembered = 1000

/** Makes the function that logs unreadable rows of one database. */
export const makeRecorder = () => {
  const recorded = new Map<string, number>()
  return (found: Unreadable): Effect.Effect<void> =>
    Effect.flatMap(Effect.all([lifeMillis, Noted]), ([life, note]) => {
      note?.(found)
      const key = `${found.statement} ${found.row}`
      const before = recorded.get(key)
      if (before !== undefined && life - before < silentMillis) return Effect.void
      recorded.delete(key)
      recorded.set(key, life)
      if (recorded.size > mostRemembered) recorded.delete(recorded.keys().next().value ?? "")
      return Effect.andThen(
        emit("db_row_unreadable", { statement: found.statement, row: found.row, error: found.error }),
        count("acme_svc_database_rows_unreadable_total", {})
      )
    })
}
