import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EventLog.ts"
import { count } from "../telemetry/Metrics.ts"
import { lifeMillis } from "../Time.ts"

/** A row that a statement has found and that does not decode, such as `id 0190…, kind signer_issue`. */
export interface Unreadable {
  readonly statement: string
  readonly row: string
  /** The columns, and what is wrong with each; no value. */
  readonly error: string
}

/** Takes what a surface shows beside a list: the rows that could not be read as they are. Nobody takes them by default. */
const Noted = Context.Reference<((found: Unreadable) => void) | undefined>("acme/kernel/sql/Unreadable/Noted", {
  defaultValue: () => undefined
})

/** The result of an effect, and each row once that it found and that could not be read as it is. */
export const noted = <A, E, R>(
  self: Effect.Effect<A, E, R>
): Effect.Effect<readonly [result: A, unreadable: ReadonlyArray<Unreadable>], E, R> =>
  Effect.suspend(() => {
    const found = new Map<string, Unreadable>()
    return Effect.map(
      Effect.provideService(self, Noted, (one) => found.set(`${one.row} ${one.error}`, one)),
      (result) => [result, [...found.values()]] as const
    )
  })

/** A row is found again and again, by a loop or by operators. It is recorded once a minute. */
const silentMillis = 60_000
const mostRemembered = 1000

/** Records the rows that one database has. */
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
        count(({ rowUnreadable }) => rowUnreadable())
      )
    })
}
