import * as Argument from "effect/cli/Argument"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { draftAuthority } from "../../operations/operator/authority/RootSignature.ts"
import { caObject, certificateText } from "../../surfaces/cli/CeremonyText.ts"
import { escapedLines } from "../../surfaces/cli/Escaped.ts"
import { CommandFailed, filesFailed } from "../CommandFailed.ts"
import { Confirmation } from "../Confirmation.ts"
import { fromHere } from "../Here.ts"
import { daysFlag } from "./CaInitCommand.ts"
import { command } from "./Descriptor.ts"
import { octetsOf } from "./FileInput.ts"
import { jsonOption, neededText, optional, optionalText } from "./Flags.ts"
import { knownPassphrase } from "./Passphrase.ts"
import { permitFlag } from "./PermitFlag.ts"

/** `ca sign`: the root's half of a ceremony, on a machine with neither a configuration nor a database. */
export const signCommand = command(
  "sign",
  "Sign the request of an issuing CA with a root, on the root's own machine, and print the certificate followed by the root; neither a configuration nor a database is needed. Example: acme-svc ca sign issuing.csr --root root --permit corp.example. Exit codes: 0, 1, 2, 3.",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription("The request, PEM or DER, or - for standard input.")
    ),
    root: neededText("root", "The folder of the root."),
    permit: permitFlag,
    days: optional(
      daysFlag("days"),
      "Lifetime of the issuing CA. Without it, five years, but no longer than the root."
    ),
    passphraseFile: optionalText(
      "passphrase-file",
      "File with the passphrase of the root, or - for standard input. Without it, it is typed or read from standard input."
    ),
    json: jsonOption
  },
  ({ days, file, json, passphraseFile, permit: permitted, root }) =>
    Effect.gen(function*() {
      if (file === "-" && (passphraseFile === undefined || passphraseFile === "-")) {
        return yield* new CommandFailed({
          code: 2,
          message: "The request and the passphrase cannot both come from standard input."
        })
      }
      const folder = yield* fromHere(root)
      const octets = yield* octetsOf("file", file)
      const drafted = yield* Effect.mapError(draftAuthority(folder, octets, { days, permitted }), filesFailed)
      yield* Console.error(certificateText("The root", drafted.root))
      yield* Console.error(certificateText("will sign", drafted.draft))
      yield* Confirmation.ask(
        "Sign this certificate, after comparing the SHA-256 of the key with what `ca csr` printed?"
      )
      const passphrase = yield* knownPassphrase(passphraseFile)
      const { chainPem, copy, facts } = yield* Effect.mapError(drafted.sign(passphrase), filesFailed)
      yield* Console.error(escapedLines(`Signed. A copy stays in ${copy}.`))
      yield* Console.log(json ? JSON.stringify({ ...caObject(facts), certificate: chainPem, copy }) : chainPem)
    })
)
