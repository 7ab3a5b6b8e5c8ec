import * as Effect from "effect/Effect"
import type { AuditRow } from "../../domain/Audit.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { rfc3339 } from "../../engine/Time.ts"
import * as audit from "../../store/AuditRows.ts"

/**
 * In one transaction, deletes up to `limit` rows that were written before an epoch second, and records how many were
 * deleted. So the trail records every gap, even if the process is killed.
 */
export const prune = (by: Pick<AuditRow<"audit_pruned">, "actorId" | "actorKind">, before: number) => (limit: number) =>
  transaction(Effect.tap(audit.sweep(before, limit), (removed) =>
    removed === 0
      ? Effect.void
      : audit.insert({ event: "audit_pruned", ...by, detail: { cutoff: rfc3339(before), removed } })))
