import { Clock, Deferred, Effect } from "effect"
import type { OrderId } from "../../src/domain/Id.ts"
import type { Payload } from "../../src/domain/Notification.ts"
import * as Runner from "../../src/engine/queue/Runner.ts"
import { Database } from "../../src/engine/sql/Database.ts"
import type { Caller } from "../../src/operations/Caller.ts"
import { Notifier } from "../../src/services/notify/Notifier.ts"
import type { Config } from "../../src/settings/AppConfig.ts"
import { handlers } from "../../src/surfaces/jobs/JobHandlers.ts"
import { killedAfter } from "./Faults.ts"
import { callerAt, column, handmadeChain, idLiteral, orderOf, profileOf, sql } from "./Graph.ts"
import { daySeconds, madeAt } from "./LocalCa.ts"

/* Certificates that expire soon, and the workers that report them. */

/** Sets columns of an order directly. */
export const setOrder = Effect.fnUntraced(function*(id: OrderId, set: string) {
  const { dialect } = yield* Database
  yield* sql(`UPDATE orders SET ${set} WHERE id = ${idLiteral(dialect, id)}`)
})

/** Returns an order of this account whose certificate expires `days` days after {@link madeAt}. */
export const ending = Effect.fnUntraced(function*(caller: Caller, days: number, ...names: ReadonlyArray<string>) {
  const { id } = yield* orderOf(caller, ...names)
  const end = madeAt + days * daySeconds
  yield* setOrder(id, `status = 'valid', certificate = '${handmadeChain}', cert_serial = '0a', cert_not_after = ${end}`)
  return id
})

/** Returns a new account with these contacts. */
export const accountWith = Effect.fnUntraced(function*(
  config: Config,
  contact: ReadonlyArray<string> = [],
  profile = "default"
) {
  const caller = yield* callerAt(profileOf(config, profile))
  const { dialect } = yield* Database
  const text = JSON.stringify(contact).replaceAll("'", "''")
  yield* sql(`UPDATE accounts SET contact = '${text}' WHERE id = ${idLiteral(dialect, caller.accountId)}`)
  return caller
})

const kinds = new Set(["notify_expiry_digest", "notify_expiry_reminders", "authority_expiry"])

/**
 * Makes a worker that does the periodic work of a configuration. With `delivers`, the worker also makes the deliveries.
 */
export const worker = (config: Config, { delivers = false, owner = "host:1:a" } = {}) =>
  Effect.provide(
    Effect.gen(function*() {
      const known = (yield* handlers(config)).filter(({ kind }) =>
        kinds.has(kind) || delivers && kind === "notify_deliver"
      )
      return yield* Runner.make({ ...config.jobs, owner }, known)
    }),
    Notifier.layer(() => config)
  )

/** Starts a worker and lets it do due work. */
export const works = Effect.fnUntraced(function*(
  config: Config,
  options: { readonly delivers?: boolean; readonly owner?: string } = {}
) {
  const { enqueuePeriodic, idle, pass } = yield* worker(config, options)
  yield* Effect.provide(enqueuePeriodic(), Notifier.layer(() => config))
  for (let round = 0; round < 3; round++) {
    yield* pass
    yield* Effect.orDie(idle)
  }
})

/** Starts a worker that is killed after `statements` statements. Returns whether the worker finished before. */
export const worksUntil = Effect.fnUntraced(function*(config: Config, statements: number) {
  const { driver, killed } = yield* killedAfter(yield* Database, statements)
  const dying = Effect.gen(function*() {
    const { idle, pass } = yield* worker(config, { owner: "host:9:dead" })
    yield* pass
    yield* Effect.race(Effect.orDie(idle), Deferred.await(killed))
  })
  yield* Effect.provideService(Effect.scoped(dying), Database, driver)
  return !(yield* Deferred.isDone(killed))
})

/** The queued deliveries, oldest first. */
export const queued = Effect.map(
  column("SELECT payload FROM jobs WHERE kind = 'notify_deliver' ORDER BY id"),
  (rows) =>
    rows.map((row) => JSON.parse(row) as { readonly entry: string; readonly event: string; readonly fields: Payload })
)

/** Runs an effect with a clock that is `seconds` ahead. */
export const ahead = (seconds: number) => <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.clockWith((clock) => {
    const lead = seconds * 1000
    const other: Clock.Clock = Object.assign(Object.create(clock) as Clock.Clock, {
      currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + lead,
      currentTimeMillis: Effect.map(clock.currentTimeMillis, (millis) => millis + lead)
    })
    return Effect.provideService(self, Clock.Clock, other)
  })
