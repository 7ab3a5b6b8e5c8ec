import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Pool, PoolClient, QueryResult } from "pg"
import type { Row } from "./Driver.ts"
import { lend, rowsOf, send } from "./PostgresPool.ts"
import type { SqlError } from "./SqlError.ts"

/* How a statement of PostgreSQL is given up that nobody waits for any more. */

/** Asks for the number of the server's session, as the last of several statements. */
export const askSession = `SELECT pg_backend_pid() AS "session"`

/** The answer to {@link askSession}. */
export const sessionOf = (answers: unknown): number => {
  const last: unknown = Array.isArray(answers) ? answers.at(-1) : undefined
  return Number((last as QueryResult | undefined)?.rows[0]?.session)
}

/**
 * Has the server give up what a session does, over another connection; completes when the session has been signalled. A signal that finds
 * it idle does nothing. So as long as the connection of that session is given to nobody before this has completed and its last statement
 * is answered, no other statement can be hit. Where it cannot be asked, the bounds of the server remain.
 */
export const giveUp = (pool: Pool, session: number): Effect.Effect<void> =>
  Effect.callback((resume) =>
    lend(pool, (found) => {
      if (Exit.isFailure(found)) return resume(Effect.void)
      const { client, giveBack } = found.value
      send(client, "SELECT pg_cancel_backend($1)", [session], () => {
        giveBack()
        resume(Effect.void)
      })
    })
  )

/** The rows of a statement. When it is interrupted, `unwanted` runs, and the statement is waited for, however it ends. */
export const wanted = (
  client: PoolClient,
  text: string,
  params: ReadonlyArray<unknown>,
  unwanted: Effect.Effect<void>
): Effect.Effect<ReadonlyArray<Row>, SqlError> =>
  Effect.callback((resume) => {
    let isOver = false
    let over = () => {}
    send(client, text, params, (result) => {
      isOver = true
      resume(Exit.map(result, rowsOf))
      over()
    })
    const ended = Effect.callback<void>((done) => {
      if (isOver) return done(Effect.void)
      over = () => done(Effect.void)
    })
    return Effect.suspend(() => isOver ? Effect.void : Effect.andThen(unwanted, ended))
  })
