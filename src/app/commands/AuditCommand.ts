import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { actorKinds, auditEvents, auditOutcomes } from "../../domain/Audit.ts"
import * as auditTrail from "../../operations/AuditTrail.ts"
import { auditFile } from "../../operations/Exports.ts"
import { auditObject } from "../../operations/objects/AuditObjects.ts"
import { auditFilters } from "../../operations/RecordFilters.ts"
import { renderAuditRow, renderTrail } from "../../surfaces/cli/AuditText.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { Progress } from "../Progress.ts"
import { withRecords } from "../Records.ts"
import { untilStopped } from "../Stoppable.ts"
import { command } from "./Descriptor.ts"
import { write } from "./ExportCommand.ts"
import {
  checkSpan,
  formatOption,
  jsonOption,
  numberFlag,
  optional,
  optionalText,
  optionalWord,
  pageOptions,
  serialFlag,
  spanOptions
} from "./Flags.ts"
import { print } from "./Print.ts"

const filterFlags = {
  profile: optionalText("profile", "Only rows of this profile."),
  accountId: optionalText("account-id", "Only rows about this account."),
  orderId: optionalText("order-id", "Only rows about this order."),
  certSerial: optional(serialFlag, "Only rows about the certificate with this serial number."),
  requestId: optionalText("request-id", "Only rows of this request."),
  event: optionalWord("event", auditEvents),
  outcome: optionalWord("outcome", auditOutcomes),
  actorKind: optionalWord("actor-kind", actorKinds),
  ...spanOptions
}

type Filters = Parameters<typeof auditFilters>[0]
type Given = Omit<Filters, "since" | "until"> & Parameters<typeof checkSpan>[0]

const filtersOf = ({ since, until, ...words }: Given) =>
  Effect.map(auditFilters(words), (filters) => ({ ...filters, since, until }))

const listCommand = command(
  "list",
  "List the audit trail, newest first. Example: acme-svc audit list --outcome failure --since 2027-01-01. Exit codes: 0, 1, 2, 3.",
  { ...filterFlags, ...pageOptions, json: jsonOption },
  ({ json, limit, offset, ...given }) =>
    Effect.andThen(
      checkSpan(given),
      withRecords(Effect.gen(function*() {
        const found = yield* auditTrail.list(yield* filtersOf(given), { limit, offset })
        const { total, truncated } = found
        const items = found.items.map(auditObject)
        const page = { items, total, limit, offset, ...(truncated ? { truncated } : {}) }
        yield* print(json, page, () => renderTrail(items, total))
        if (truncated) yield* Console.error("The search ended early: only the newest rows were searched.")
      }))
    )
)

const showCommand = command(
  "show",
  "Show a row of the audit trail. Example: acme-svc audit show 41. Exit codes: 0, 1, 3.",
  {
    id: Argument.String("id").pipe(Argument.withDescription("The row's number.")),
    json: jsonOption
  },
  ({ id, json }) =>
    withRecords(Effect.flatMap(auditTrail.find(id), (row) => {
      const object = auditObject(row)
      return print(json, object, () => renderAuditRow(object))
    }))
)

const exportCommand = command(
  "export",
  "Write the audit trail to standard output, newest first. Example: acme-svc audit export --format json. Exit codes: 0, 1, 2, 3.",
  { ...filterFlags, format: formatOption },
  ({ format, ...given }) =>
    Effect.andThen(
      checkSpan(given),
      withRecords(Effect.flatMap(
        Effect.flatMap(filtersOf(given), (filters) => auditFile(filters, { format })),
        write
      ))
    )
)

const mostDays = 100_000

const cleanupCommand = command(
  "cleanup",
  "Delete old rows of the audit trail. Example: acme-svc audit cleanup --older-than 365. Exit codes: 0, 1, 2, 3.",
  {
    days: numberFlag("older-than", { least: 1, most: mostDays, of: "a number of days" }).pipe(
      Flag.withDescription("Delete rows that are older than this many days.")
    ),
    json: jsonOption
  },
  ({ days, json }) =>
    withRecords(Effect.gen(function*() {
      const rows = yield* auditTrail.preview(days)
      if (rows > 0) yield* Confirmation.ask(`Delete ${rows} row(s) of the audit trail older than ${days} day(s)?`)
      const gone = yield* Ref.make(0)
      const operator = yield* Operator
      const { removed } = yield* Progress.run({ title: "Deleting rows", total: rows }, (report) =>
        untilStopped(
          auditTrail.cleanup(operator, days, (count) => Effect.andThen(Ref.set(gone, count), report(count))),
          Effect.map(Ref.get(gone), (count) => `Stopped; ${count} row(s) are deleted.`)
        ))
      yield* print(json, { removed }, () => `Deleted ${removed} row(s).`)
    }))
)

/** `audit`: the audit trail. */
export const auditCommand = Command.make("audit").pipe(
  Command.withDescription("The audit trail."),
  Command.withSubcommands([listCommand, showCommand, exportCommand, cleanupCommand])
)
