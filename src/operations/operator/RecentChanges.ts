import * as Effect from "effect/Effect"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as changes from "../../store/OperatorChanges.ts"

/**
 * How many seconds of the trail are compared. These are more than the longest lag of a standby, together with the
 * difference between the clocks of two processes.
 */
const comparedSeconds = 900

/**
 * Returns a count of the changes that operators have made lately. Every change of an operator has a row of the trail in
 * its transaction. So if two copies of the database have the same number, they have the same changes.
 */
export const recentChanges: Effect.Effect<Effect.Effect<number, StorageFailed, Database>> = Effect.map(
  currentSeconds,
  (now) => changes.countSince(now - comparedSeconds)
)
