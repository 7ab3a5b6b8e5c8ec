import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { NumberNotAbove } from "../../domain/OperatorError.ts"
import { readOctets, said } from "../../kernel/host/KeyFile.ts"
import { mapLayerError } from "../../kernel/Layers.ts"
import { rfc3339 } from "../../kernel/Time.ts"
import * as crls from "../../operations/crl/CrlRecords.ts"
import * as lists from "../../operations/crl/ListImport.ts"
import { crlObject } from "../../operations/Objects.ts"
import { largestNumber } from "../../pki/x509/RevocationList.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { CommandFailed, filesFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { fromHere } from "../Here.ts"
import { withRecords, withRecordsAndConfig } from "../Records.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, numberFlag, reasonOption, serialArgument } from "./Flags.ts"
import { print } from "./Print.ts"

/** The CAs of profiles. One whose certificate is gone keeps nobody from the lists of the others, nor from its own stored one. */
const authoritiesOf = (served: Parameters<typeof Issuers.layer>[0]) =>
  mapLayerError(Issuers.layer(served, undefined, () => true), filesFailed)

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
      }).pipe(Effect.provide(authoritiesOf(served)))
    }))
)

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

const mostOctets = 512 * 1024 * 1024

const importCommand = command(
  "import",
  "Take back in, after a restore, what a list of a CA revokes and the database lacks. Example: acme-svc crl import ISSUER ca.crl.before. Exit codes: 0, 1, 2, 3.",
  {
    issuer: Argument.String("issuer").pipe(Argument.withDescription("The CA's id, as crl list shows it.")),
    file: Argument.String("file").pipe(
      Argument.withDescription("A complete revocation list that this CA has signed, PEM or DER.")
    ),
    json: jsonOption
  },
  ({ file, issuer, json }) =>
    withRecordsAndConfig(Effect.fnUntraced(function*({ config }) {
      const served = config.profiles.filter(({ enabled }) => enabled)
      yield* Effect.gen(function*() {
        const { octets } = yield* Effect.mapError(
          Effect.flatMap(fromHere(file), (path) => readOctets(path, mostOctets)),
          (error) => new CommandFailed({ code: 3, message: `${error.path} cannot be used: ${said(error)}.` })
        )
        const found = yield* lists.examine(served.map(({ name }) => name), issuer, file, octets)
        const { compared: { ended, lacking, recorded }, list } = found
        const ofOrders = lacking.filter(({ certificate }) => certificate !== undefined).length
        if (lacking.length > 0) {
          yield* Confirmation.ask(
            `Revoke ${lacking.length} certificates that list ${list.number} of ${
              rfc3339(list.thisUpdate)
            } names and the database does not? This cannot be undone.`
          )
        }
        const imported = yield* lists.importList(yield* Operator, found)
        const object = {
          issuer,
          crlNumber: list.number,
          thisUpdate: rfc3339(list.thisUpdate),
          entries: list.entries.length,
          recorded,
          ended,
          imported,
          withoutOrder: lacking.length - ofOrders
        }
        yield* print(json, object, () => renderDetail(object))
      }).pipe(Effect.provide(authoritiesOf(served)))
    }))
)

/** `crl`: the revocation lists of the local CAs. */
export const crlCommand = Command.make("crl").pipe(
  Command.withDescription("Revocation lists of the local CAs."),
  Command.withSubcommands([listCommand, raiseCommand, revokeCommand, importCommand])
)
