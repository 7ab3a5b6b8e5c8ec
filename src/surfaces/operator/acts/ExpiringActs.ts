import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as expiring from "../../../operations/operator/ExpiringRecords.ts"
import { expiringFile } from "../../../operations/operator/Exports.ts"
import { formats } from "../../../operations/operator/ExportText.ts"
import { expiringObject } from "../../../operations/operator/Objects.ts"
import { renderTable } from "../../cli/TextTable.ts"
import { act, FileOutput, noun } from "../Act.ts"
import { Acting, Configured, paged } from "../Acting.ts"
import { clamped, ofProfile, optional, or, paging, word } from "../Field.ts"
import { Id, Int, intOf, pageOf, Time } from "../schemas/Common.ts"
import { KindName } from "../schemas/OrderSchemas.ts"

/* Declares the acts about certificates that expire soon (docs/contribute/decisions/expiring.md). */

/** The words that say whether a list shows or hides certificates that have been replaced. */
export const supersededWords = ["show", "hide"] as const

const ofWindow = "The default is notify.expiry.lead_days, or 30 if that key is 0."

const filters = {
  ...ofProfile,
  days: optional(
    clamped(
      `How many days ahead certificates are looked for. A value below 1 counts as 1, and a value above 100000 as 100000. ${ofWindow}`,
      {
        least: 1,
        most: expiring.mostDays,
        help: `Certificates that expire within this many days, 1 to 100000. ${ofWindow}`
      }
    )
  ),
  superseded: or(word(supersededWords, "hide leaves out certificates that were replaced."), "show")
}

/** A certificate that expires soon, and the certificate that replaces it, if there is one. */
const Expiring = Schema.Struct({
  orderId: Id,
  profile: Schema.String,
  accountId: Id,
  certSerial: Schema.optionalKey(Schema.String),
  identifiers: Schema.Array(Schema.String),
  kind: KindName,
  notAfter: Time,
  daysRemaining: Int,
  supersededBy: Schema.optionalKey(Schema.Struct({
    orderId: Id,
    certSerial: Schema.optionalKey(Schema.String),
    notAfter: Schema.optionalKey(Time),
    via: Schema.Literals(["replaces", "identifiers"])
  }))
}).annotate({ identifier: "Expiring" })

/** Lists certificates that expire soon. */
export const listExpiring = act({
  id: "listExpiring",
  does: "List certificates that expire soon, soonest first",
  access: "viewer",
  mayLag: true,
  input: { ...filters, ...paging },
  output: Schema.Struct({
    ...pageOf(Expiring).fields,
    hidden: intOf("How many certificates were left out because they have been replaced."),
    days: Int,
    truncated: Schema.optionalKey(
      Schema.Boolean.annotate({
        description: "The counting ended early, so more certificates than hidden may have been left out."
      })
    )
  }),
  errors: [],
  run: ({ limit, offset, ...given }) =>
    Effect.gen(function*() {
      const wanted = expiring.wantedOf(yield* Configured.config, given)
      const page = yield* paged({ limit, offset }, (window) => expiring.list(wanted, window), expiringObject)
      return { ...page, days: wanted.days }
    }),
  http: { route: "GET /api/expiring" },
  cli: {
    command: "order expiring",
    example: "order expiring --within 30 --hide-superseded",
    flags: { days: { flag: "within" } },
    spelt: { superseded: { hide: ["hide-superseded", "Leave out certificates that have been replaced."] } },
    needsConfig: ({ days }) => days === undefined,
    text: ({ hidden, items, total }) =>
      renderTable(
        ["id", "profile", "kind", "expires", "days", "names", "replaced by"],
        items.map(({ daysRemaining, identifiers, kind, notAfter, orderId, profile, supersededBy }) => [
          orderId,
          profile,
          kind,
          notAfter,
          String(daysRemaining),
          identifiers.join(" "),
          supersededBy?.orderId ?? ""
        ]),
        total - hidden
      ),
    remark: ({ hidden, total, truncated }) =>
      hidden > 0
        ? `${
          truncated === true ? `At least ${hidden}` : hidden
        } of ${total} are not listed, because they have been replaced.`
        : undefined
  }
})

/** Exports certificates that expire soon as a file. */
export const exportExpiring = act({
  id: "exportExpiring",
  does: "Export certificates that expire soon as a file",
  access: "viewer",
  mayLag: true,
  input: { ...filters, format: or(word(formats, "The format of the file."), "csv") },
  output: FileOutput,
  errors: ["export_too_large"],
  run: ({ format, ...given }) =>
    Effect.gen(function*() {
      const wanted = expiring.wantedOf(yield* Configured.config, given)
      return yield* expiringFile(wanted, { format, most: yield* Acting.mostExported })
    }),
  http: { route: "GET /api/expiring/export" }
})

/** The acts about certificates that expire soon. */
export const expiringActs = noun({
  name: "expiring",
  description: "Certificates that expire soon.",
  commands: { order: "Orders and their certificates." },
  acts: [listExpiring, exportExpiring]
})
