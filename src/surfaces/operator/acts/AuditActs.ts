import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { actorKinds, auditEvents, auditOutcomes } from "../../../domain/Audit.ts"
import * as auditTrail from "../../../operations/operator/AuditTrail.ts"
import { auditFile } from "../../../operations/operator/Exports.ts"
import { formats } from "../../../operations/operator/ExportText.ts"
import { auditObject } from "../../../operations/operator/objects/AuditObjects.ts"
import { renderAuditRow, renderTrail } from "../../cli/AuditText.ts"
import { act, FileOutput, noun } from "../Act.ts"
import { Acting, paged, periodFits } from "../Acting.ts"
import { id, key, line, ofProfile, openWord, optional, or, paging, period, serial, word } from "../Field.ts"
import { Int, Members, Time, walkedPageOf } from "../schemas/Common.ts"

/* Declares the acts about the audit trail (docs/decisions/audit-rows.md). */

const AuditRow = Schema.Struct({
  id: Int,
  createdAt: Time,
  event: Schema.String.annotate({ examples: ["certificate_issued"] }),
  outcome: Schema.Literals(auditOutcomes),
  actorKind: Schema.Literals(actorKinds),
  actorId: Schema.optionalKey(Schema.String),
  profile: Schema.optionalKey(Schema.String),
  accountId: Schema.optionalKey(Schema.String),
  orderId: Schema.optionalKey(Schema.String),
  certSerial: Schema.optionalKey(Schema.String),
  identifiers: Schema.Array(Schema.String),
  clientIp: Schema.optionalKey(Schema.String),
  clientPtr: Schema.optionalKey(Schema.String),
  userAgent: Schema.optionalKey(Schema.String),
  requestId: Schema.optionalKey(Schema.String),
  reason: Schema.optionalKey(Schema.String),
  detail: Schema.optionalKey(Members)
}).annotate({ identifier: "AuditRow" })

const filters = {
  ...ofProfile,
  accountId: optional(id("The id of the account.")),
  orderId: optional(id("The id of the order.")),
  certSerial: optional(serial("The serial number of the certificate, in hexadecimal.")),
  requestId: optional(line("The id of the request, which is also in the log and in the answer.", { longest: 128 })),
  event: optional(
    openWord(
      auditEvents,
      "The name of the event. An event of another version of the service is accepted if a row has it."
    )
  ),
  outcome: optional(word(auditOutcomes, "Whether the event was a success.")),
  actorKind: optional(word(actorKinds, "Who acted.")),
  ...period
}

/** Lists rows of the trail. */
export const listAudit = act({
  id: "listAudit",
  does: "List the audit trail, newest first",
  access: "viewer",
  mayLag: true,
  input: { ...filters, ...paging },
  output: walkedPageOf(AuditRow),
  errors: [],
  fits: periodFits,
  run: ({ limit, offset, ...wanted }) =>
    Effect.gen(function*() {
      yield* auditTrail.checkEvent(wanted.event)
      return yield* paged({ limit, offset }, (window) => auditTrail.list(wanted, window), auditObject)
    }),
  http: { route: "GET /api/audit" },
  cli: {
    command: "audit list",
    example: "audit list --outcome failure --since 2027-01-01",
    text: ({ items, total }) => renderTrail(items, total),
    remark: ({ truncated }) =>
      truncated === true ? "The search ended early: only the newest rows were searched." : undefined
  }
})

/** Exports the trail as a file. */
export const exportAudit = act({
  id: "exportAudit",
  does: "Export the audit trail as a file",
  access: "viewer",
  mayLag: true,
  input: { ...filters, format: or(word(formats, "The format of the file."), "csv") },
  output: FileOutput,
  errors: ["export_too_large"],
  fits: periodFits,
  run: ({ format, ...wanted }) =>
    Effect.gen(function*() {
      yield* auditTrail.checkEvent(wanted.event)
      return yield* auditFile(wanted, { format, most: yield* Acting.mostExported })
    }),
  http: { route: "GET /api/audit/export" },
  cli: {
    command: "audit export",
    help: "Write the audit trail to standard output, newest first.",
    example: "audit export --format json"
  }
})

/** Shows a row of the trail. */
export const readAuditRow = act({
  id: "readAuditRow",
  does: "Show a row of the audit trail",
  access: "viewer",
  mayLag: true,
  input: { id: key("The number of the row.") },
  output: AuditRow,
  errors: [],
  run: ({ id }) => Effect.map(auditTrail.find(id), auditObject),
  http: { route: "GET /api/audit/{id}" },
  cli: { command: "audit show", example: "audit show 41", text: renderAuditRow }
})

/** The acts about the audit trail. */
export const auditActs = noun({
  name: "audit",
  description: "Actions and refusals. Rows are never changed.",
  commands: { audit: "The audit trail." },
  acts: [listAudit, exportAudit, readAuditRow]
})
