import type * as Effect from "effect/Effect"
import type { Database } from "../../../engine/sql/Database.ts"
import type { Lagging } from "../../../engine/sql/Lag.ts"
import { mayLag, plainly } from "../../../engine/sql/Lag.ts"
import { recentChanges } from "../../../operations/operator/RecentChanges.ts"
import type { Guard } from "./OperatorChecks.ts"

/*
 * The reads of a request whose route may lag go to the standby (docs/decisions/standby.md). By then the checks have read
 * the session or the token from the primary.
 */

/** The header of an answer that a standby has read: by how many milliseconds the answer may be old at most. */
export const lagHeader = "x-acme-svc-read-lag-ms"

/** Runs the work of a route, and returns by how many seconds what it has read may be old. */
export const lagging = <A, E, R>(
  { mayLag: isAllowed = false }: Guard,
  self: Effect.Effect<A, E, R>
): Effect.Effect<Lagging<A>, E, R | Database> => isAllowed ? mayLag(self, recentChanges) : plainly(self)
