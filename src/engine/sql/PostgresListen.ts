import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Driver } from "./Driver.ts"
import type { Pool } from "./PostgresPool.ts"
import type { Connector } from "./PostgresServer.ts"
import { SqlError } from "./SqlError.ts"

const lost = (cause: unknown) => new SqlError({ cause, message: "the listening connection was lost" })

// The server must not end the session because it is idle. Servers before PostgreSQL 14 have no such limit.
const noIdleLimit = "SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'"

// Proxies and firewalls forget connections that are silent for a minute, and a server may disappear without closing its
// connections.
const pingMillis = 20_000

/**
 * How many sessions of a database may listen to a channel, and after how long a session without a place tries again.
 */
export interface Places {
  readonly most: number
  readonly retryMillis: number
}

// At each commit with notifications, PostgreSQL wakes every session that listens, whatever its channel. So the number
// of these sessions is limited. Processes without a place poll.
const places: Places = { most: 16, retryMillis: 30_000 }

/** Returns the statement that takes a place until the session ends. */
const takePlace = (channel: string, { most }: Places) =>
  `SELECT place FROM generate_series(1, ${most}) AS place WHERE pg_try_advisory_lock(hashtext('${channel}'), place) LIMIT 1`

/**
 * Returns a query about a channel to which one process listens. Its result is true if this process listens in a
 * different database from the one that is queried. A proxy that pools transactions may send the query to the session
 * that listens.
 */
export const listensElsewhere = (channel: string): string =>
  `SELECT NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objsubid = 2
     AND objid = 1 AND classid::bigint = hashtext('${channel}')::bigint & 4294967295)
   AND pg_try_advisory_xact_lock(hashtext('${channel}'), 1) AS "isElsewhere"`

/**
 * Listens for notifications on its own connection, which ends when the connections of the pool are renewed. `counted`
 * counts that connection while it is open. If all places are taken, closes the connection, and tries again after a
 * wait.
 */
export const listen = (
  connector: Connector,
  pool: Pool,
  counted: Effect.Effect<unknown, never, Scope.Scope>,
  of = places
): NonNullable<Driver["listen"]> =>
(channel, { heard, listening }) => {
  const listenOnce = Effect.scoped(Effect.gen(function*() {
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
    const ask = (text: string) =>
      Effect.tryPromise({
        try: () => client.query(text) as Promise<{ readonly rows: ReadonlyArray<unknown> }>,
        catch: lost
      })
    client.on("notification", ({ payload }) => heard(payload ?? ""))
    client.on("error", fail).on("end", () => fail("ended"))
    if ((yield* ask(takePlace(channel, of))).rows.length === 0) return
    yield* ask(noIdleLimit)
    yield* ask(`LISTEN ${channel}`)
    const ping = () => void (client.query("SELECT 1") as Promise<unknown>).catch(fail)
    yield* Effect.acquireRelease(
      Effect.sync(() => setInterval(ping, pingMillis).unref()),
      (timer) => Effect.sync(() => clearInterval(timer))
    )
    yield* listening
    return yield* Deferred.await(over)
  }))
  // The wait differs for each process, so that not all of them ask at once.
  const later = Effect.suspend(() => Effect.sleep(of.retryMillis * (0.75 + Math.random() / 2)))
  return Effect.forever(Effect.andThen(listenOnce, later))
}
