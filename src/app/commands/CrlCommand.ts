import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import { readOctets, said } from "../../engine/host/KeyFile.ts"
import { rfc3339 } from "../../engine/Time.ts"
import * as lists from "../../operations/operator/ListImport.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { authorityActs } from "../../surfaces/operator/acts/AuthorityActs.ts"
import { crlActs } from "../../surfaces/operator/acts/CrlActs.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { fromHere } from "../Here.ts"
import { withRecordsAndConfig } from "../Records.ts"
import { actCommand } from "./ActCommand.ts"
import { authorities, authoritiesIn } from "./AuthoritiesHere.ts"
import { command } from "./Descriptor.ts"
import { jsonOption } from "./Flags.ts"
import { print } from "./Print.ts"

const mostOctets = 512 * 1024 * 1024

const importCommand = command(
  "import",
  "After a restore, record the revocations of a CA's list that the database lacks. Example: acme-svc crl import ISSUER ca.crl.before. Exit codes: 0, 1, 2, 3.",
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
      }).pipe(Effect.provide(authoritiesIn(config)))
    }))
)

/** `crl`: the revocation lists of the local CAs. */
export const crlCommand = actCommand(
  { ...authorityActs, acts: [...authorityActs.acts, ...crlActs.acts] },
  "crl",
  { crl: [importCommand] },
  { "crl list": authorities }
)
