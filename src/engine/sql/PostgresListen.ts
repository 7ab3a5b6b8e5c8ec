import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Driver } from "./Driver.ts"
import type { Pool } from "./PostgresPool.ts"
import type { Connector } from "./PostgresServer.ts"
import { SqlError } from "./SqlError.ts"

const lost = (cause: unknown) => new SqlError({ cause, message: "the listening connection was lost" })

// The server must not end the session for waiting. Servers before PostgreSQL 14 have no such limit.
const noIdleLimit = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"

// Proxies and firewalls forget connections that are silent for a minute, and a server may be gone without a word.
const pingMillis = 20_000

/**
 * Listens for notifications on its own connection, which ends when the connections of the pool are renewed. `counted`
 * counts that connection while it is open.
 */
export const listen = (
  connector: Connector,
  pool: Pool,
  counted: Effect.Effect<unknown, never, Scope.Scope>
): NonNullable<Driver["listen"]> =>
(channel, { heard, listening }) =>
  Effect.scoped(Effect.gen(function*() {
    const over = yield* Deferred.make<never, SqlError>()
    const fail = (cause: unknown) => Deferred.doneUnsafe(over, Effect.fail(lost(cause)))
    yield* Effect.acquireRelease(
      Effect.sync(() => pool.onRenewal(() => fail(new Error("another server takes its place")))),
      (ignore) => Effect.sync(ignore)
    )
    const client = yield* Effect.tap(
      Effect.acquireRelease(
        Effect.tryPromise({ try: () => connector.connect(), catch: lost }),
        // The wait is limited, because a dead server does not confirm the end of a connection.
        (one) => Effect.ignore(Effect.timeoutOption(Effect.tryPromise(() => one.end() as Promise<void>), 1000))
      ),
      counted
    )
    client.on("notification", ({ payload }) => heard(payload ?? ""))
    client.on("error", fail).on("end", () => fail("ended"))
    yield* Effect.tryPromise({
      try: async () => {
        await (client.query(noIdleLimit) as Promise<unknown>)
        await (client.query(`LISTEN ${channel}`) as Promise<unknown>)
      },
      catch: lost
    })
    const ping = () => void (client.query("SELECT 1") as Promise<unknown>).catch(fail)
    yield* Effect.acquireRelease(
      Effect.sync(() => setInterval(ping, pingMillis).unref()),
      (timer) => Effect.sync(() => clearInterval(timer))
    )
    yield* listening
    return yield* Deferred.await(over)
  }))
