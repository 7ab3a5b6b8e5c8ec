import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Connection } from "./Driver.ts"
import { connectionOf } from "./PostgresClient.ts"
import type { PostgresOptions } from "./PostgresServer.ts"
import { Connector, readUrl } from "./PostgresServer.ts"
import { SqlError } from "./SqlError.ts"

/**
 * Opens a single connection that closes with the scope, for statements that no pool may run, such as
 * `CREATE DATABASE`. Fails as a pool would if no server of the URL fits.
 */
export const openSession = (
  options: Pick<PostgresOptions, "acquire_timeout_ms" | "statement_timeout_ms" | "url">
): Effect.Effect<Connection, SqlError, Scope.Scope> =>
  Effect.gen(function*() {
    const connector = new Connector(yield* readUrl({ ...options, ofSeveral: "read-write", pool_max: 1 }))
    const client = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: () => connector.connect(),
        catch: (cause) => new SqlError({ cause, message: "the connection could not be opened" })
      }),
      (client) => Effect.ignore(Effect.tryPromise(() => client.end() as Promise<void>))
    )
    return connectionOf(client)
  })
