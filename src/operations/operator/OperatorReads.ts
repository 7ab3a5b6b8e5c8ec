import * as Effect from "effect/Effect"
import { Busy } from "../../domain/OperatorError.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { aside } from "../../engine/sql/Database.ts"
import type { Lagging } from "../../engine/sql/Lag.ts"
import { mayLag, plainly } from "../../engine/sql/Lag.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { countSince } from "../../store/OperatorChanges.ts"

const mostMillis = 10_000
const retrySeconds = 5

/**
 * Reads a list, a count or the result of a search for operators, on a separate connection. The limit is ten seconds. If
 * the reading takes longer, or if too many other readings are running, it fails with `Busy`
 * (docs/contribute/decisions/admin.md, "Conventions").
 */
export const readForOperator = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  patienceMillis: number = mostMillis
): Effect.Effect<A, E | StorageFailed | Busy, R | Database> =>
  Effect.catchIf(aside(body, patienceMillis), isLate, () => new Busy({ retryAfter: retrySeconds }))

const isLate = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "isLate" in error && error.isLate === true

/**
 * How many seconds of the trail are compared. This is more than the longest lag of a standby plus the difference
 * between the clocks of two processes.
 */
const comparedSeconds = 900

/**
 * Returns an effect that counts the recent changes by operators. The transaction of each change also writes a row of
 * the trail. So if two copies of the database have the same number, they have the same changes.
 */
const recentChanges = Effect.map(currentSeconds, (now) => countSince(now - comparedSeconds))

/**
 * Runs the work of a route. If the route may lag, its reads go to the standby (docs/contribute/decisions/standby.md).
 * The session or the token was already read from the primary when the request was checked. Also returns how many
 * seconds old the data may be.
 */
export const lagging = <A, E, R>(
  { mayLag: isAllowed = false }: { readonly mayLag?: boolean },
  self: Effect.Effect<A, E, R>
): Effect.Effect<Lagging<A>, E, R | Database> => isAllowed ? mayLag(self, recentChanges) : plainly(self)
