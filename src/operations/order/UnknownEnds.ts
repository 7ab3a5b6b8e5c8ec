import * as Effect from "effect/Effect"
import { emit } from "../../kernel/telemetry/EventLog.ts"
import * as unknownEnds from "../../store/orders/UnknownEnds.ts"
import { leavesOf } from "./Leaves.ts"

const most = 500
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
    const leaves = yield* leavesOf(found.map(({ certificate }) => certificate))
    const rows_updated = yield* unknownEnds.set(
      found.map(({ id }, number) => [id, leaves[number]?.notAfter ?? unreadable])
    )
    yield* emit("notify_expiry_backfilled", { profile, rows_updated })
    return found.length
  }).pipe(
    Effect.catch(({ message }) => Effect.as(emit("notify_expiry_backfill_failed", { profile, error: message }), 0))
  )
