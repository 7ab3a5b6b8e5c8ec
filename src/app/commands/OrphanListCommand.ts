import * as Effect from "effect/Effect"
import { orphanObject } from "../../operations/objects/OrphanedCertificate.ts"
import { list } from "../../operations/order/OrphanedCertificates.ts"
import { orphanFilters, orphanStatuses } from "../../operations/RecordFilters.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { withRecords } from "../Records.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, optionalWord, pageOptions } from "./Flags.ts"
import { print } from "./Print.ts"

/** `order orphaned`: certificates that were signed for orders that ended without them. */
export const orphanedCommand = command(
  "orphaned",
  "List certificates whose order ended without them, and what became of them. Example: acme-svc order orphaned --status kept. Exit codes: 0, 1, 3.",
  {
    profile: optionalText("profile", "Only certificates of this profile."),
    status: optionalWord("status", orphanStatuses, "Only certificates of which this became."),
    ...pageOptions,
    json: jsonOption
  },
  ({ json, limit, offset, profile, status }) =>
    withRecords(Effect.gen(function*() {
      const found = yield* list(yield* orphanFilters({ profile, status }), { limit, offset })
      const items = found.items.map(orphanObject)
      yield* print(json, { items, total: found.total, limit, offset }, () =>
        renderTable(
          ["order", "profile", "serial", "status", "found", "ends", "names", "error"],
          items.map((one) => [
            one.orderId,
            one.profile,
            one.serial,
            one.status,
            one.foundAt,
            one.notAfter,
            one.names.join(" "),
            one.error ?? ""
          ]),
          found.total
        ))
    }))
)
