import * as Effect from "effect/Effect"
import { finallyDo } from "../Finally.ts"
import type { SqlError } from "./SqlError.ts"
import { noConnection } from "./SqlError.ts"

/**
 * Makes a gate through which one user at a time gets the writing connection, in the order of arrival. A wait ends after
 * `patienceMillis`. Both the wait and the use can be interrupted if the caller allows this.
 */
export const makeGate = (patienceMillis: number) => {
  let isFree = true
  const waiting = new Set<() => void>()
  const leave = () => {
    const [next] = waiting
    if (next === undefined) isFree = true
    else {
      waiting.delete(next)
      next() // the connection is passed directly to the next user
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
      resume(noConnection(patienceMillis))
    }, patienceMillis)
    waiting.add(enter)
    return Effect.sync(() => {
      clearTimeout(timer)
      waiting.delete(enter)
      if (isIn) leave()
    })
  })
  return {
    pass: <A, E, R>(use: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
      Effect.uninterruptibleMask((restore) => {
        if (!isFree) return Effect.andThen(restore(wait), finallyDo(restore(use), leave))
        isFree = false
        return finallyDo(restore(use), leave)
      }),
    isFree: () => isFree
  }
}
