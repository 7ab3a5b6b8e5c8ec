import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { QueryResult } from "pg"
import type { Row } from "./Driver.ts"
import type { PostgresClient } from "./PostgresClient.ts"
import { rowsOf, send } from "./PostgresClient.ts"
import type { Pool } from "./PostgresPool.ts"
import type { SqlError } from "./SqlError.ts"

/* Cancels a PostgreSQL statement if nobody waits for its result any more. */

/** A session, and when its server was started: another server may have a session of the same number. */
interface Session {
  readonly number: number
  readonly server: string
}

const startOfServer = "extract(epoch FROM pg_postmaster_start_time())::text"

/** Queries the session of the server. Send it as the last of several statements. */
export const askSession = `SELECT pg_backend_pid() AS "session", ${startOfServer} AS "server"`

/** Returns the result of {@link askSession}. */
export const sessionOf = (answers: unknown): Session => {
  const last: unknown = Array.isArray(answers) ? answers.at(-1) : undefined
  const row = (last as QueryResult | undefined)?.rows[0]
  return { number: Number(row?.session), server: String(row?.server) }
}

const cancel = `SELECT pg_cancel_backend($1) WHERE ${startOfServer} = $2`

/**
 * Cancels the current statement of a server session, over another connection. It completes when the session has been
 * signalled; an idle session ignores the signal. To avoid cancelling another statement, keep the connection of that
 * session until this has completed and its last statement has returned. If no connection is free for the request, the
 * statement ends by the time limits of the server.
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
    })
  )

/**
 * Returns the rows of a statement. On interruption it runs `unwanted`, and still waits for the end of the statement.
 */
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
