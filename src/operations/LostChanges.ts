import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { emit } from "../domain/words/Log.ts"
import { count } from "../domain/words/Series.ts"
import type { Database } from "../engine/sql/Database.ts"
import { isReadOnly } from "../engine/sql/Database.ts"
import { rfc3339 } from "../engine/Time.ts"
import type { Change } from "../store/Acknowledged.ts"
import * as acknowledged from "../store/Acknowledged.ts"
import * as audit from "../store/AuditRows.ts"

/*
 * Reports changes that this process has committed but the database has lost
 * (docs/contribute/decisions/lost-changes.md).
 */

/** A row of the trail lists at most this many ids of each kind. The log has all of them. */
const mostIds = 50
const lookEverySeconds = 10

const firstOf = (changes: ReadonlyArray<Change>, of: (change: Change) => string | undefined) =>
  [...new Set(changes.flatMap((change) => of(change) ?? []))].slice(0, mostIds)

const countsOf = (changes: ReadonlyArray<Change>): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {}
  for (const { change } of changes) counts[change] = (counts[change] ?? 0) + 1
  return counts
}

/**
 * Looks once for lost changes, and reports them in the trail, the log and the metrics. Reports nothing while the
 * database is read-only, because the server may then be a standby that does not have the last changes yet.
 */
export const tellLost = Effect.gen(function*() {
  if (yield* isReadOnly) return
  const lost = yield* acknowledged.lost
  if (lost.length === 0) return
  const since = rfc3339(Math.min(...lost.map(({ at }) => at)))
  yield* audit.insert({
    event: "changes_lost",
    actorKind: "system",
    detail: {
      changes: lost.length,
      since,
      counts: countsOf(lost),
      accounts: firstOf(lost, ({ accountId }) => accountId),
      orders: firstOf(lost, ({ orderId }) => orderId),
      serials: firstOf(lost, ({ certSerial }) => certSerial)
    }
  })
  yield* acknowledged.forget(lost)
  for (const { accountId: account_id, at, certSerial: cert_serial, change, orderId: order_id, profile } of lost) {
    yield* emit("db_change_lost", { change, since: rfc3339(at), profile, account_id, order_id, cert_serial })
  }
  yield* emit("db_went_back", { count: lost.length, since })
  yield* count("acme_svc_database_changes_lost_total", {}, lost.length)
})

/** Looks for lost changes every ten seconds, forever. Reports nothing while the database is unavailable. */
export const watchLost: Effect.Effect<never, never, Database> = Effect.andThen(
  Effect.repeat(Effect.delay(Effect.ignore(tellLost), `${lookEverySeconds} seconds`), Schedule.forever),
  Effect.never
)
