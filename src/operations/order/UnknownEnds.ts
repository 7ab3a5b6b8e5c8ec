import { Effect } from "effect"
import type { OrderId } from "../../domain/Id.ts"
import { turn } from "../../kernel/sql/Database.ts"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import { namedLeafOf } from "../../pki/x509/CertId.ts"
import * as unknownEnds from "../../store/orders/UnknownEnds.ts"

const most = 500
/** As many chains are parsed in one turn of the event loop. */
const parsedAtOnce = 50
/** A chain that cannot be read counts as one that never ends, and is not looked at again. */
const unreadable = -1

/**
 * Stores when certificates of a profile end, where no column says so yet: up to 500. A failure is logged and nothing
 * else. Answers how many there were.
 */
export const fill = (profile: string) =>
  Effect.gen(function*() {
    const found = yield* unknownEnds.find(profile, most)
    if (found.length === 0) return 0
    const ends: Array<readonly [OrderId, number]> = []
    for (const [number, { certificate, id }] of found.entries()) {
      if (number % parsedAtOnce === parsedAtOnce - 1) yield* turn
      ends.push([id, namedLeafOf(certificate)?.notAfter ?? unreadable])
    }
    const rows_updated = yield* unknownEnds.set(ends)
    yield* emit("notify_expiry_backfilled", { profile, rows_updated })
    return found.length
  }).pipe(
    Effect.catchAll(({ message }) => Effect.as(emit("notify_expiry_backfill_failed", { profile, error: message }), 0))
  )
