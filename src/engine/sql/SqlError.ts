import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { emit } from "../telemetry/EngineLog.ts"

/** The engine refused a statement, or could not be reached. */
export class SqlError extends Data.TaggedError("SqlError")<{ readonly cause: unknown; readonly message?: string }> {}

/** The cause of a failure: a read or the wait for a connection has exceeded its time limit. */
export class Late extends Error {}

/** Fails because no connection became free in time, and logs that. */
export const noConnection = (patienceMillis: number): Effect.Effect<never, SqlError> =>
  Effect.andThen(
    emit("db_pool_timeout", { waited_ms: patienceMillis }),
    new SqlError({
      cause: new Late(`no connection within ${patienceMillis} ms (database.acquire_timeout_ms)`),
      message: "no connection"
    })
  )
