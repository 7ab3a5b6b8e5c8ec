import * as Effect from "effect/Effect"
import { actorKinds, auditEvents, auditOutcomes } from "../../../domain/Audit.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { saidOfAuditEvent, saidOfProblem } from "../../../operations/operator/Catalogue.ts"
import { mostOverApi } from "../../../operations/operator/Exports.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { exportAudit, listAudit, listAuditReceivers, readAuditRow, verifyAudit } from "../../operator/acts/AuditActs.ts"
import type { Filter } from "../Listing.ts"
import { listView, periodsOf, windowOf } from "../Listing.ts"
import { downloaded, looked } from "../PanelActs.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, laggingPage, page } from "../Route.ts"

/* The pages about the audit trail. */

/** The highest number of faults on the page of the chain. */
const mostFaults = 50

const filtersOf = (config: Config): ReadonlyArray<Filter> => [
  { name: "event", label: "Event", kind: "choice", words: auditEvents },
  { name: "outcome", label: "Outcome", kind: "choice", words: auditOutcomes },
  { name: "actorKind", label: "Actor", kind: "choice", words: actorKinds },
  { name: "profile", label: "Profile", kind: "choice", words: profilesOf(config) },
  { name: "accountId", label: "Account", kind: "text", hint: "id" },
  { name: "orderId", label: "Order", kind: "text", hint: "id" },
  { name: "certSerial", label: "Serial", kind: "text" },
  { name: "requestId", label: "Request", kind: "text", hint: "id" },
  { name: "since", label: "Since", kind: "date" },
  { name: "until", label: "Until", kind: "date" }
]

/** Returns the routes of the pages about the audit trail. */
export const auditRoutes = (config: Config, filters = filtersOf(config)) => [
  laggingPage("/ui/audit", (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { isCut, items, problem, total } = yield* orRefused(looked(listAudit, given))
      return page("audit", "Audit trail", {
        rows: items,
        problem,
        periods: periodsOf("/ui/audit", query, filters, yield* currentSeconds),
        retentionDays: config.audit.retention_days,
        list: listView("/ui/audit", query, filters, {
          total,
          limit: windowOf(query, config).limit,
          shown: items.length,
          isCut
        }, {
          path: "/ui/audit/export",
          most: mostOverApi,
          command: "acme-svc audit export"
        })
      }, problem === undefined ? {} : { status: problem.status })
    })),
  laggingPage("/ui/audit/export", (given) => downloaded(exportAudit, given)),
  forRole("viewer")(
    "GET",
    "/ui/audit/chain",
    (given) =>
      Effect.gen(function*() {
        const chain = yield* looked(verifyAudit, given)
        const { items } = yield* looked(listAuditReceivers, given)
        return page("audit-chain", "Chain of the audit trail", {
          chain,
          isPart: given.query.has("after"),
          faults: chain.faults.slice(0, mostFaults),
          receivers: items
        })
      })
  ),
  laggingPage(
    "/ui/audit/{id}",
    (given) =>
      Effect.map(looked(readAuditRow, given), (row) =>
        page("audit-row", `Audit row ${row.id}`, {
          row,
          said: { event: saidOfAuditEvent(row.event), reason: saidOfProblem(row.reason) },
          members: Object.entries(row.detail ?? {}).map(([name, value]) => ({
            name,
            value,
            isText: typeof value === "string"
          }))
        }))
  )
]
