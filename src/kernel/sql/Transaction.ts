import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EventLog.ts"
import type { Executor } from "./Driver.ts"
import type { SqlError } from "./SqlError.ts"

/* The open transaction of a fiber: what it runs on, what it does when it ends, and what has failed in it meanwhile. */

/** Effects to run after a commit, after an end either way, and when a run of the body has come to nothing. */
export interface Plans {
  readonly committed: Array<Effect.Effect<void>>
  readonly ended: Array<Effect.Effect<void>>
  readonly undone: Array<Effect.Effect<void>>
  /** The first statement that nobody waited for and that failed. All later ones fail because of it. */
  failure: { readonly statement: string; readonly error: SqlError } | undefined
  /** How many statements were sent ahead and have no answer yet. */
  inFlight: number
  /** What waits until there are none. */
  readonly waiting: Array<() => void>
  /** When the last statement that was sent ahead had its answer: the next one did not begin before. */
  answered: number
}

/** Nothing to do yet. */
export const noPlans = (): Plans => ({
  committed: [],
  ended: [],
  undone: [],
  failure: undefined,
  inFlight: 0,
  waiting: [],
  answered: 0
})

/**
 * So many statements are under way at once without anybody waiting. The driver's own bound on a statement runs from when it was sent,
 * so all of them have that bound together; and a body that sends without end would let nothing else run.
 */
export const mostAhead = 4

/** A transaction, or the separate connection of reads beside the service. */
export interface Transaction {
  readonly connection: Executor
  readonly plans: Plans
}

/**
 * The open transaction of a fiber. It is a reference, and not a service: to provide a service takes seventeen operations, and every
 * write has a transaction.
 */
export const openTransaction = Context.Reference<Transaction | undefined>(
  "acme/kernel/sql/Transaction/openTransaction",
  { defaultValue: () => undefined }
)

/** A statement that takes as many milliseconds is reported. */
export const slowAfterMillis = 1000

/** Reports a slow statement. */
export const slow = (statement: string, elapsed: number): Effect.Effect<void> =>
  emit("db_statement_slow", { statement, elapsed_ms: Math.round(elapsed) })

/** Counts a statement that is sent ahead, and hears of its end. */
export const heardLater = (statement: string, plans: Plans): Parameters<NonNullable<Executor["ahead"]>>[2] => {
  const started = performance.now()
  plans.inFlight++
  return (error) => {
    const now = performance.now()
    const elapsed = now - Math.max(started, plans.answered)
    plans.answered = now
    if (elapsed >= slowAfterMillis) plans.ended.push(slow(statement, elapsed))
    if (error !== undefined) plans.failure ??= { statement, error }
    if (--plans.inFlight > 0) return
    for (const goOn of plans.waiting.splice(0)) goOn()
  }
}
