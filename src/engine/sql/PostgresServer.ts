import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ClientConfig } from "pg"
import { Client } from "pg"
import { SqlError } from "./SqlError.ts"

/** `database.*` of the configuration. */
export interface PostgresOptions {
  readonly url: Redacted.Redacted
  readonly pool_max: number
  readonly acquire_timeout_ms: number
  /**
   * `transaction` means that a proxy gives each transaction a session of the server, so the service must leave no state
   * in a session.
   */
  readonly pooling?: "session" | "transaction"
}

/**
 * Reads the URL and the files that it names. This happens once, so that a later connection does not fail because a file
 * was moved.
 */
export const readUrl = (options: PostgresOptions): Effect.Effect<ClientConfig, SqlError> =>
  Effect.try({
    try: () => {
      const connectionString = Redacted.value(options.url)
      const { database, host, password, port, ssl, user } = new Client({ connectionString })
      return {
        user,
        password,
        host,
        port,
        database,
        ssl,
        application_name: new URL(connectionString).searchParams.get("application_name") ?? undefined,
        connectionTimeoutMillis: options.acquire_timeout_ms,
        keepAlive: true,
        // An idle connection that a firewall has forgotten is noticed within minutes instead of hours.
        keepAliveInitialDelayMillis: 30_000
      }
    },
    catch: (cause) => new SqlError({ cause, message: "the URL cannot be used" })
  })
