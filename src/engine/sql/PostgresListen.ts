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

/** How many sessions of a database may listen to a channel, and when one that found no place tries again. */
export interface Places {
  readonly most: number
  readonly retryMillis: number
}

// PostgreSQL wakes every session that listens for each commit with notifications, whatever they listen to. So their
// number is limited; processes without a place poll.
const places: Places = { most: 16, retryMillis: 30_000 }

/** Takes a place, for as long as the session lasts. */
const takePlace = (channel: string, { most }: Places) =>
  `SELECT place FROM generate_series(1, ${most}) AS place WHERE pg_try_advisory_lock(hashtext('${channel}'), place) LIMIT 1`

/**
 * SQL for a channel to which one process listens. Its answer is true if that process listens in another database than
 * the one where this is asked. A proxy that pools transactions may ask it in the session that listens.
 */
export const listensElsewhere = (channel: string): string =>
  `SELECT NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() AND objsubid = 2
     AND objid = 1 AND classid::bigint = hashtext('${channel}')::bigint & 4294967295)
   AND pg_try_advisory_xact_lock(hashtext('${channel}'), 1) AS "isElsewhere"`

/**
 * Listens for notifications on its own connection, which ends when the connections of the pool are renewed. `counted`
 * counts that connection while it is open. If all places are taken, it waits without a connection and tries again.
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
