import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { actorKinds, auditEvents, auditOutcomes } from "../../../domain/Audit.ts"
import { readHead } from "../../../domain/AuditChain.ts"
import { receiverNames } from "../../../domain/ReceiverName.ts"
import { auditObject } from "../../../operations/AuditRowObject.ts"
import * as receiverRecords from "../../../operations/operator/AuditReceiverRecords.ts"
import * as auditTrail from "../../../operations/operator/AuditTrail.ts"
import { faultKinds } from "../../../operations/operator/ChainDifferences.ts"
import { signatureVerdicts, verify } from "../../../operations/operator/ChainVerification.ts"
import { auditFile } from "../../../operations/operator/Exports.ts"
import { formats } from "../../../operations/operator/ExportText.ts"
import { chainObject } from "../../../operations/operator/objects/ChainObjects.ts"
import { receiversOf } from "../../../settings/AuditTable.ts"
import { renderAuditRow, renderTrail } from "../../cli/AuditText.ts"
import { renderChain } from "../../cli/ChainText.ts"
import { renderReceivers } from "../../cli/ReceiverText.ts"
import { act, FileOutput, noun } from "../Act.ts"
import { Acting, Configured, paged, periodFits } from "../Acting.ts"
import {
  id,
  key,
  line,
  ofProfile,
  openWord,
  optional,
  or,
  paging,
  period,
  serial,
  textOf,
  whole,
  word
} from "../Field.ts"
import { Int, intOf, Members, Time, walkedPageOf } from "../schemas/Common.ts"

/* Declares the acts about the audit trail (docs/contribute/decisions/audit-rows.md). */

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

const Span = Schema.Struct({ rows: Int, firstId: Schema.optionalKey(Int), lastId: Schema.optionalKey(Int) })
  .annotate({ identifier: "AuditSpan" })

const Chain = Schema.Struct({
  verified: intOf("How many rows are what was chained."),
  links: intOf("How many links of the chain were checked."),
  pruned: intOf("How many chained rows the retention has deleted."),
  uncovered: Span.annotate({ description: "The rows that are older than the chain." }),
  unchained: Span.annotate({ description: "The rows that are not chained yet." }),
  began: Schema.optionalKey(Time),
  head: Schema.optionalKey(
    Schema.Struct({
      name: Schema.String.annotate({ description: "The text to keep outside, and to give to head later." }),
      sequence: Int,
      hash: Schema.String,
      chainedAt: Schema.optionalKey(Time)
    })
  ),
  signed: Schema.optionalKey(
    Schema.Struct({
      name: Schema.String,
      sequence: Int,
      hash: Schema.String,
      signedAt: Schema.optionalKey(Time),
      keyId: Schema.optionalKey(Schema.String),
      signature: Schema.optionalKey(Schema.String),
      verdict: Schema.Literals(signatureVerdicts)
    })
  ),
  unsignedReason: Schema.optionalKey(
    Schema.String.annotate({ description: "Why signatures were not checked." })
  ),
  lastCheck: Schema.optionalKey(
    Schema.Struct({
      endedAt: Schema.optionalKey(Time),
      verified: intOf("How many rows were what was chained."),
      faults: intOf("How many faults were found.")
    }).annotate({ description: "The last whole check by the service itself, which checks the chain each day." })
  ),
  faultsFound: intOf("How many faults were found. faults lists the first thousand."),
  faults: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(faultKinds),
      of: Schema.Literals(["rows", "links", "signature", "head"]),
      detail: Schema.String,
      sequence: Schema.optionalKey(Int),
      since: Schema.optionalKey(
        Time.annotate({ description: "When the rows were chained. They were changed after that." })
      ),
      rows: Schema.optionalKey(Int),
      firstId: Schema.optionalKey(Int),
      lastId: Schema.optionalKey(Int)
    })
  ),
  next: Schema.optionalKey(intOf("The link to give as after to go on. Absent if the check has reached the head."))
}).annotate({ identifier: "AuditChain" })

/** Over HTTP, a check ends after about this number of rows, which takes a second or two. */
const mostRowsOfRequest = 50_000

/** Checks whether rows of the trail were changed, removed, inserted or reordered. */
export const verifyAudit = act({
  id: "verifyAudit",
  does: "Check whether rows of the audit trail were changed, removed, inserted or reordered",
  access: "viewer",
  input: {
    after: optional(
      whole("The link after which the check begins: next of the answer before.", {
        least: 1,
        most: 999_999_999_999_999,
        of: "the number of a link,"
      })
    ),
    head: optional(
      textOf({
        description: "A head that was kept outside. It is a fault if the chain does not have it any more.",
        shown: "head",
        takes: "the name of a head: its number, a colon and its hash",
        read: readHead
      })
    )
  },
  output: Chain,
  errors: [],
  run: ({ after, head }) =>
    Effect.gen(function*() {
      const { operator } = yield* Acting
      const config = yield* Configured.served
      const mostRows = operator.kind === "cli" ? Number.POSITIVE_INFINITY : mostRowsOfRequest
      return chainObject(yield* verify({ after, held: head, mostRows, keyPath: config?.audit.chain_key_path }))
    }),
  http: { route: "GET /api/audit/chain" },
  cli: {
    command: "audit verify",
    help:
      "Check whether rows of the audit trail were changed, removed, inserted or reordered since they were chained. A fault ends the command with exit code 3.",
    example: "audit verify",
    omits: ["after"],
    text: renderChain,
    faults: ({ faultsFound }) =>
      faultsFound === 0
        ? []
        : [{ code: 3, message: `The audit trail is not what was chained: ${faultsFound} fault(s).` }]
  }
})

const Receiver = Schema.Struct({
  name: Schema.Literals(receiverNames),
  configured: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether rows are pushed now. Absent if the configuration is not known." })
  ),
  pushedId: intOf("The receiver has taken the rows up to this id."),
  pushedAt: Schema.optionalKey(Time),
  lagRows: intOf("The distance from that id to the id of the newest row."),
  lagSeconds: intOf("The age in seconds of the oldest row that the receiver has not taken, or 0."),
  failures: intOf("How many attempts have failed since the last success."),
  failingSince: Schema.optionalKey(Time),
  error: Schema.optionalKey(Schema.String),
  lostUpto: Schema.optionalKey(
    intOf("Rows up to this id were deleted by their age before the receiver took them. Told once by the next push.")
  )
}).annotate({ identifier: "AuditReceiver" })

/** Lists the receivers to which rows are pushed. */
export const listAuditReceivers = act({
  id: "listAuditReceivers",
  does: "List the receivers of the audit trail, and how far each one is",
  access: "viewer",
  input: {},
  output: Schema.Struct({ items: Schema.Array(Receiver) }),
  errors: [],
  run: () =>
    Effect.gen(function*() {
      const config = yield* Configured.served
      return { items: yield* receiverRecords.list(config === undefined ? undefined : receiversOf(config.audit)) }
    }),
  http: { route: "GET /api/audit/receivers" },
  cli: {
    command: "audit receivers",
    example: "audit receivers",
    text: ({ items }) => renderReceivers(items)
  }
})

/** The acts about the audit trail. */
export const auditActs = noun({
  name: "audit",
  description: "Actions and refusals. Rows are never changed.",
  commands: { audit: "The audit trail." },
  acts: [listAudit, exportAudit, verifyAudit, listAuditReceivers, readAuditRow]
})
