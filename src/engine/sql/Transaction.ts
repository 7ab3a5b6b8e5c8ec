import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EngineLog.ts"
import type { Executor } from "./Driver.ts"
import type { SqlError } from "./SqlError.ts"

/* The open transaction of a fiber: its connection, the effects to run at its end, and its first failure. */

/**
 * Effects to run after the commit (`committed`), after any end (`ended`), and when a run of the body has no effect
 * (`undone`).
 */
export interface Plans {
  readonly committed: Array<Effect.Effect<void>>
  readonly ended: Array<Effect.Effect<void>>
  readonly undone: Array<Effect.Effect<void>>
  /** The first statement that failed among those that were not waited for. All later ones fail because of it. */
  failure: { readonly statement: string; readonly error: SqlError } | undefined
  /** How many statements were sent ahead and have no answer yet. */
  inFlight: number
  /** The functions to call when no statement is in flight any more. */
  readonly waiting: Array<() => void>
  /** When the last statement that was sent ahead was answered. The next statement did not begin before. */
  answered: number
}

/** Nothing to run yet. */
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
 * How many statements may be sent ahead without an answer. The driver's time limit of a statement begins when it is
 * sent, so all of them share one limit. And a body that sends without end would keep everything else from running.
 */
export const mostAhead = 4

/** A transaction, or the separate connection for reads beside the service. */
export interface Transaction {
  readonly connection: Executor
  readonly plans: Plans
}

/**
 * The open transaction of a fiber. It is a reference and not a service, because providing a service takes seventeen
 * operations, and every write has a transaction.
 */
export const openTransaction = Context.Reference<Transaction | undefined>(
  "acme/engine/sql/Transaction/openTransaction",
  { defaultValue: () => undefined }
)

/** A statement that takes this many milliseconds or more is reported. */
export const slowAfterMillis = 1000

/** Reports a slow statement. */
export const slow = (statement: string, elapsed: number): Effect.Effect<void> =>
  emit("db_statement_slow", { statement, elapsed_ms: Math.round(elapsed) })

/** Counts a statement that is sent ahead; the result is to be called when it has ended. */
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
