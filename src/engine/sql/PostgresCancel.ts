import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { QueryResult } from "pg"
import type { Row } from "./Driver.ts"
import type { PostgresClient } from "./PostgresClient.ts"
import { rowsOf, send } from "./PostgresClient.ts"
import type { Pool } from "./PostgresPool.ts"
import type { SqlError } from "./SqlError.ts"

/* Cancels a PostgreSQL statement if its result is no longer needed. */

/** A session, and when its server was started, because another server may have a session with the same number. */
interface Session {
  readonly number: number
  readonly server: string
}

const startOfServer = "extract(epoch FROM pg_postmaster_start_time())::text"

/** Queries the session of the server. This must be sent as the last of several statements. */
export const askSession = `SELECT pg_backend_pid() AS "session", ${startOfServer} AS "server"`

/** Returns the result of {@link askSession}. */
export const sessionOf = (answers: unknown): Session => {
  const last: unknown = Array.isArray(answers) ? answers.at(-1) : undefined
  const row = (last as QueryResult | undefined)?.rows[0]
  return { number: Number(row?.session), server: String(row?.server) }
}

const cancel = `SELECT pg_cancel_backend($1) WHERE ${startOfServer} = $2`

/**
 * Cancels the current statement of a server session, over another connection, which waits for no turn. Completes when
 * the session has been signalled; an idle session ignores the signal. The caller must keep the connection of the
 * session until the cancellation has completed and the session's last statement has returned. Otherwise a later
 * statement could be cancelled. If no connection is free for the signal, the time limits of the server end the
 * statement.
 */
export const giveUp = (pool: Pool, session: Session): Effect.Effect<void> =>
  Effect.callback((resume) =>
    pool.lend((found) => {
      if (Exit.isFailure(found)) return resume(Effect.void)
      const { client, giveBack } = found.value
      send(client, cancel, [session.number, session.server], () => {
        giveBack()
        resume(Effect.void)
      })
    }, { isVital: true })
  )

/** Returns the rows of a statement. If interrupted, runs `unwanted`, and still waits until the statement has ended. */
export const wanted = (
  client: PostgresClient,
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
