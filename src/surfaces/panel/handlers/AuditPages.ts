import * as Effect from "effect/Effect"
import { actorKinds, auditEvents, auditOutcomes } from "../../../domain/Audit.ts"
import { currentSeconds } from "../../../kernel/Time.ts"
import * as auditTrail from "../../../operations/AuditTrail.ts"
import { auditFile, mostOverApi } from "../../../operations/Exports.ts"
import { auditObject } from "../../../operations/objects/AuditObjects.ts"
import { auditFilters } from "../../../operations/RecordFilters.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import type { Filter } from "../Listing.ts"
import { filtersIn, listView, periodsOf, windowOf } from "../Listing.ts"
import { exportOf } from "../PanelExport.ts"
import { orRefused, profilesOf } from "../PanelLists.ts"
import { forRole, page } from "../Route.ts"

/* The audit trail. */

const names = [
  "event",
  "outcome",
  "actorKind",
  "profile",
  "accountId",
  "orderId",
  "certSerial",
  "requestId",
  "since",
  "until"
] as const

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

/** The routes of the audit trail. */
export const auditRoutes = (config: Config, filters = filtersOf(config)) => [
  forRole("viewer")("GET", "/ui/audit", ({ query }) =>
    Effect.gen(function*() {
      const window = windowOf(query, config)
      const { isCut, items, problem, total } = yield* orRefused(
        Effect.flatMap(auditFilters(filtersIn(query, names)), (wanted) => auditTrail.list(wanted, window))
      )
      return page("audit", "Audit trail", {
        rows: items.map(auditObject),
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
  forRole("viewer")(
    "GET",
    "/ui/audit/export",
    (given) =>
      exportOf(given, "audit", (format) =>
        Effect.flatMap(
          auditFilters(filtersIn(given.query, names)),
          (wanted) => auditFile(wanted, { format, most: mostOverApi })
        ))
  ),
  forRole("viewer")(
    "GET",
    "/ui/audit/{id}",
    ({ parameters: { id = "" } }) =>
      Effect.map(auditTrail.find(id), (found) => {
        const row = auditObject(found)
        return page("audit-row", `Audit row ${row.id}`, {
          row,
          members: Object.entries(row.detail ?? {}).map(([name, value]) => ({
            name,
            value,
            isText: typeof value === "string"
          }))
        })
      })
  )
]
