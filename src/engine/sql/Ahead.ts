import * as Effect from "effect/Effect"
import type { Database, StorageFailed, Transaction } from "./Database.ts"
import { driverOf, failed, openTransaction, slow, slowAfterMillis } from "./Database.ts"

/*
 * Statements of a PostgreSQL transaction that are sent without waiting for their answers
 * (docs/contribute/decisions/hot-path.md, "Statements of PostgreSQL").
 */

/**
 * The highest number of statements that may have been sent ahead without an answer. The driver's time limit for a
 * statement starts when the statement is sent, so these statements share one limit. If the number were not limited, a
 * body that keeps sending statements would also block all other work.
 */
const mostAhead = 4

/** Sends a statement ahead, if the transaction's connection can do that. Returns whether it was sent. */
export const sendAhead = (
  { connection, plans }: Transaction,
  statement: string,
  text: string,
  values: ReadonlyArray<unknown>
): boolean => {
  if (connection.ahead === undefined || plans.inFlight >= mostAhead) return false
  const started = performance.now()
  plans.inFlight++
  connection.ahead(text, values, (error) => {
    const now = performance.now()
    const elapsed = now - Math.max(started, plans.answered)
    plans.answered = now
    if (elapsed >= slowAfterMillis) plans.ended.push(slow(statement, elapsed))
    if (error !== undefined) plans.failure ??= { statement, error }
    if (--plans.inFlight > 0) return
    for (const goOn of plans.waiting.splice(0)) goOn()
  })
  return true
}

/** Waits for the answers to all statements that the open transaction has sent ahead. Fails if one of them failed. */
export const arrived: Effect.Effect<void, StorageFailed, Database> = Effect.withFiber((fiber) => {
  const plans = fiber.getRef(openTransaction)?.plans
  if (plans === undefined || (plans.inFlight === 0 && plans.failure === undefined)) return Effect.void
  const driver = driverOf(fiber)
  return Effect.flatMap(
    Effect.callback<void>((resume) =>
      plans.inFlight === 0 ? resume(Effect.void) : void plans.waiting.push(() => resume(Effect.void))
    ),
    () => plans.failure === undefined ? Effect.void : failed(driver, "transaction", plans.failure.error, plans)
  )
})
