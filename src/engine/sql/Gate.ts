import * as Effect from "effect/Effect"
import { finallyDo } from "../Finally.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { Late, SqlError } from "./SqlError.ts"

/** Lets a number of users in at once and the others in turn. None waits longer than the patience of the gate. */
export interface Gate {
  /** Neither the wait nor `use` is interrupted. */
  readonly hold: <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
  /** Like `hold`, but the wait and `use` may be interrupted. */
  readonly pass: <A, E, R>(use: Effect.Effect<A, E, R>) => Effect.Effect<A, E | SqlError, R>
  readonly isFree: () => boolean
}

/** A gate for `places` connections. A wait ends after `patienceMillis`. */
export const makeGate = (places: number, patienceMillis: number): Gate => {
  let free = places
  const waiting = new Set<() => void>()
  const leave = () => {
    const [next] = waiting
    if (next === undefined) free++
    else {
      waiting.delete(next)
      next() // the place passes directly to the next
    }
  }
  const wait = Effect.callback<void, SqlError>((resume) => {
    let isIn = false
    const enter = () => {
      isIn = true
      clearTimeout(timer)
      resume(Effect.void)
    }
    const timer = setTimeout(() => {
      waiting.delete(enter)
      const late = new SqlError({
        cause: new Late(`no connection within ${patienceMillis} ms (database.acquire_timeout_ms)`),
        message: "no connection"
      })
      resume(Effect.andThen(emit("db_pool_timeout", { waited_ms: patienceMillis }), late))
    }, patienceMillis)
    waiting.add(enter)
    return Effect.sync(() => {
      clearTimeout(timer)
      waiting.delete(enter)
      if (isIn) leave()
    })
  })
  const enter = Effect.suspend(() => {
    if (free === 0) return wait
    free--
    return Effect.void
  })
  return {
    hold: (use) => Effect.uninterruptible(Effect.andThen(enter, finallyDo(use, leave))),
    pass: (use) =>
      Effect.uninterruptibleMask((restore) => Effect.andThen(restore(enter), finallyDo(restore(use), leave))),
    isFree: () => free > 0
  }
}
