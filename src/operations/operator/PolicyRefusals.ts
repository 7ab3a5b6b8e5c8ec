import * as Effect from "effect/Effect"
import { currentSeconds } from "../../engine/Time.ts"
import * as auditSearch from "../../store/AuditSearch.ts"
import { readForOperator } from "./OperatorReads.ts"

const daySeconds = 86_400
const most = 5000

/**
 * Counts, by rule, the signing requests that the filter of a profile refused within the last day. Refusals that no rule
 * decided are counted under the empty name. Only the newest failures are read; `isCut` means that there are more.
 * Refusals of connections and of new orders are in the log, not in the trail (docs/contribute/decisions/audit-rows.md).
 */
export const refusalsByRule = (profile: string) =>
  readForOperator(Effect.gen(function*() {
    const since = (yield* currentSeconds) - daySeconds
    const filters = { profile, event: "certificate_issue_failed", since } as const
    const rows = yield* auditSearch.search(filters, { limit: most, offset: 0 })
    const counts = new Map<string, number>()
    for (const { detail } of rows) {
      const { cause, rule = "" } = detail ?? {}
      if ((cause !== "filter_denied" && cause !== "filter_undecided") || typeof rule !== "string") continue
      counts.set(rule, (counts.get(rule) ?? 0) + 1)
    }
    return { counts, since, isCut: rows.length === most }
  }))
