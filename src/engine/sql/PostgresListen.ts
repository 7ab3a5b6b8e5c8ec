import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Driver } from "./Driver.ts"
import type { PostgresClient } from "./PostgresClient.ts"
import type { Pool } from "./PostgresPool.ts"
import { SqlError } from "./SqlError.ts"

const lost = (cause: unknown) => new SqlError({ cause, message: "the listening connection was lost" })

/**
 * Listens for notifications on its own connection, which ends when the connections of the pool are renewed. `counted`
 * counts that connection while it is open.
 */
export const listen = (
  connect: () => Promise<PostgresClient>,
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
        Effect.tryPromise({ try: connect, catch: lost }),
        // The wait is limited, because a dead server does not confirm the end of a connection.
        (one) => Effect.ignore(Effect.timeoutOption(Effect.tryPromise(() => one.end() as Promise<void>), 1000))
      ),
      counted
    )
    client.on("notification", ({ payload }) => heard(payload ?? ""))
    client.on("error", fail).on("end", () => fail("ended"))
    yield* Effect.tryPromise({ try: () => client.query(`LISTEN ${channel}`) as Promise<unknown>, catch: lost })
    yield* listening
    return yield* Deferred.await(over)
  }))
