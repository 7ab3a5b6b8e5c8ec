import * as Effect from "effect/Effect"
import { Busy } from "../../domain/OperatorError.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { aside } from "../../engine/sql/Database.ts"

const mostMillis = 10_000
const retrySeconds = 5

/**
 * Reads a list, a count or the result of a search for operators, beside the service. The limit is ten seconds. If the
 * reading takes longer, or if too many other readings are running, it fails with `Busy` (docs/decisions/admin.md,
 * "Conventions").
 */
export const readForOperator = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  patienceMillis: number = mostMillis
): Effect.Effect<A, E | StorageFailed | Busy, R | Database> =>
  Effect.catchIf(aside(body, patienceMillis), isLate, () => new Busy({ retryAfter: retrySeconds }))

const isLate = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "isLate" in error && error.isLate === true
