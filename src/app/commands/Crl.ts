import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { NumberNotAbove } from "../../domain/OperatorError.ts"
import { mapLayerError } from "../../kernel/Layers.ts"
import * as crls from "../../operations/crl/CrlRecords.ts"
import { crlObject } from "../../operations/Objects.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { filesFailed } from "../CommandFailed.ts"
import { Confirmation } from "../Confirmation.ts"
import { Operator } from "../Operator.ts"
import { withRecords, withRecordsAndConfig } from "../Records.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, numberFlag, reasonOption, serialArgument } from "./Flags.ts"
import { print } from "./Print.ts"

const listCommand = command(
  "list",
  "List the local CAs and the state of their revocation lists. Example: acme-svc crl list --json. Exit codes: 0, 1, 3.",
  { json: jsonOption },
  ({ json }) =>
    withRecordsAndConfig(Effect.fnUntraced(function*({ config }) {
      const served = config.profiles.filter(({ enabled }) => enabled)
      yield* Effect.gen(function*() {
        const items = (yield* crls.list(served.map(({ name }) => name))).map(crlObject)
        yield* print(json, { items, total: items.length, limit: items.length, offset: 0 }, () =>
          renderTable(
            ["issuer", "profiles", "number", "next update", "entries", "unlisted", "ca until", "ca", "state"],
            items.map((
              { caState, chainNotAfter, crlNumber, entries, issuer, nextUpdate, profiles, state, unlisted }
            ) => [
              issuer,
              profiles.join(" "),
              crlNumber === undefined ? "" : String(crlNumber),
              nextUpdate ?? "",
              String(entries),
              String(unlisted),
              chainNotAfter ?? "",
              caState ?? "",
              state
            ]),
            items.length
          ))
      }).pipe(Effect.provide(mapLayerError(Issuers.layer(served), filesFailed)))
    }))
)

const largestNumber = 2 ** 52 // half of the exact integers, so there is always a next number

const raiseCommand = command(
  "raise",
  "Raise the number of a revocation list after a restore. Example: acme-svc crl raise ISSUER --above 41. Exit codes: 0, 1, 2, 3.",
  {
    issuer: Argument.String("issuer").pipe(Argument.withDescription("The CA's id, as crl list shows it.")),
    above: numberFlag("above", { least: 0, most: largestNumber }).pipe(
      Flag.withDescription("A number that clients may have seen.")
    )
  },
  ({ above, issuer }) =>
    withRecords(
      Effect.gen(function*() {
        const { crlNumber } = yield* crls.find(issuer)
        if (above <= crlNumber) return yield* new NumberNotAbove({ current: crlNumber })
        yield* Confirmation.ask(
          `Raise the number of the revocation list from ${crlNumber} to ${above}? This cannot be undone.`
        )
        const { after, before } = yield* crls.raise(yield* Operator, issuer, above)
        yield* Console.log(`Raised from ${before} to ${after}; the next list has a higher number.`)
      })
    )
)

const revokeCommand = command(
  "revoke",
  "Revoke a certificate that no order has, after a restore. Example: acme-svc crl revoke ISSUER SERIAL. Exit codes: 0, 1, 2, 3.",
  {
    issuer: Argument.String("issuer").pipe(Argument.withDescription("The CA's id, as crl list shows it.")),
    serial: serialArgument,
    reason: reasonOption
  },
  ({ issuer, reason, serial }) =>
    withRecords(
      Effect.gen(function*() {
        yield* Confirmation.ask(`Put certificate ${serial} on the revocation list for good? No order here has it.`)
        yield* crls.revokeUnknown(yield* Operator, issuer, serial, reason)
        yield* Console.log(`Certificate ${serial} is revoked; the next list names it.`)
      })
    )
)

/** `crl`: the revocation lists of the local CAs. */
export const crlCommand = Command.make("crl").pipe(
  Command.withDescription("Revocation lists of the local CAs."),
  Command.withSubcommands([listCommand, raiseCommand, revokeCommand])
)
