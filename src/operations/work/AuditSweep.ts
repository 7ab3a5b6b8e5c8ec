import * as Effect from "effect/Effect"
import type { AuditRow } from "../../domain/Audit.ts"
import type { ReceiverName } from "../../domain/ReceiverName.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { inBatches } from "../../engine/sql/Pages.ts"
import { rfc3339 } from "../../engine/Time.ts"
import * as receivers from "../../store/AuditReceiverRows.ts"
import type { Deletable } from "../../store/AuditRows.ts"
import * as audit from "../../store/AuditRows.ts"
import * as chained from "../../store/ChainedRows.ts"
import * as links from "../../store/ChainLinks.ts"

/** How much earlier a row may be written than a row with a lower id, because its transaction or its clock was slower. */
const marginSeconds = 3600

/** The rows that may be deleted, and the receiver for which older rows are kept. */
export interface Deleting extends Deletable {
  readonly waitsFor: ReceiverName | undefined
}

/**
 * Returns which rows may be deleted. They were written before the given epoch second, and every receiver has taken
 * them, so that a receiver that is away loses nothing. If rows are kept for a receiver, the returned time limit is
 * earlier than the given one: links of the chain are deleted by this limit, and a row that is kept must keep its link.
 */
export const deletable = (
  names: ReadonlyArray<ReceiverName>,
  before: number
): Effect.Effect<Deleting, StorageFailed, Database> =>
  Effect.gen(function*() {
    const known = names.length === 0 ? [] : yield* receivers.list
    const [slowest] = names
      .map((name) => ({ name, taken: known.find((row) => row.name === name)?.repeatFrom ?? 0 }))
      .toSorted((one, other) => one.taken - other.taken)
    if (slowest === undefined) return { before, upto: chained.anyId, waitsFor: undefined }
    const next = yield* chained.timeAfter(slowest.taken)
    return next === undefined || next >= before
      ? { before, upto: slowest.taken, waitsFor: undefined }
      : { before: next - marginSeconds, upto: slowest.taken, waitsFor: slowest.name }
  })

/**
 * Deletes up to `limit` rows and records how many were deleted, both in one transaction. So the trail records every
 * gap, even if the process is killed. A receiver that is not configured now, and has not taken the rows, is told about
 * them when it is configured again.
 */
export const prune =
  (by: Pick<AuditRow<"audit_pruned">, "actorId" | "actorKind">, rows: Deletable) => (limit: number) =>
    transaction(Effect.gen(function*() {
      const { lastId, removed } = yield* audit.sweep(rows, limit)
      if (removed > 0) {
        yield* receivers.lose(lastId)
        yield* audit.insert({ event: "audit_pruned", ...by, detail: { cutoff: rfc3339(rows.before), removed } })
      }
      return removed
    }))

/**
 * Deletes the links whose rows were all deleted, except the last one, by which the next link can be checked. Must run
 * only after {@link prune} has deleted every row before this epoch second (docs/contribute/decisions/audit-chain.md,
 * "Retention").
 */
export const pruneLinks = (before: number) => inBatches(1000, (limit) => links.prune(before, limit))
