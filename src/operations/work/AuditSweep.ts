import * as Effect from "effect/Effect"
import type { AuditRow } from "../../domain/Audit.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { inBatches } from "../../engine/sql/Pages.ts"
import { rfc3339 } from "../../engine/Time.ts"
import * as audit from "../../store/AuditRows.ts"
import * as links from "../../store/ChainLinks.ts"

/**
 * In one transaction, deletes up to `limit` rows that were written before an epoch second, and records how many were
 * deleted. So the trail records every gap, even if the process is killed.
 */
export const prune = (by: Pick<AuditRow<"audit_pruned">, "actorId" | "actorKind">, before: number) => (limit: number) =>
  transaction(Effect.tap(audit.sweep(before, limit), (removed) =>
    removed === 0
      ? Effect.void
      : audit.insert({ event: "audit_pruned", ...by, detail: { cutoff: rfc3339(before), removed } })))

/**
 * Deletes the links whose rows were all deleted, except the last one, by which the next link can be checked. Must run
 * only after {@link prune} has deleted every row before this epoch second (docs/decisions/audit-chain.md, "Retention").
 */
export const pruneLinks = (before: number) => inBatches(1000, (limit) => links.prune(before, limit))
