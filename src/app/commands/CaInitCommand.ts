import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import type { CaKeyType } from "../../crypto/x509/SelfSigned.ts"
import type { MadeAuthority, MadeRoot } from "../../operations/operator/authority/NewAuthority.ts"
import {
  makeAuthority,
  makeRoot,
  refuseAuthority,
  refuseRoot
} from "../../operations/operator/authority/NewAuthority.ts"
import { usualDays } from "../../operations/operator/authority/RootSignature.ts"
import { caObject, transcriptText } from "../../surfaces/cli/CeremonyText.ts"
import { CommandFailed, filesFailed } from "../CommandFailed.ts"
import { fromHere } from "../Here.ts"
import { Host } from "../Host.ts"
import { keyTypeFlag, ofCa, profileFlag } from "./CaProfile.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, neededText, numberFlag, optional, optionalText, switchFlag } from "./Flags.ts"
import { newPassphrase } from "./Passphrase.ts"
import { permitFlag } from "./PermitFlag.ts"
import { secretFlag } from "./SecretInput.ts"

/** Twenty years. */
const usualRootDays = 7305
const mostDays = 36_525
/** The kind of the key of a root that is made where there is no configuration: the default of signer.local_ca.key_type. */
const usualKeyType: CaKeyType = "ecdsa-p256"

/** Makes the flag for the lifetime of a CA. */
export const daysFlag = (name: string): Flag.Flag<number> => numberFlag(name, { least: 1, most: mostDays })

const wrong = (message: string) => new CommandFailed({ code: 2, message })

const rootObject = ({ root, rootFiles }: MadeRoot) => ({
  ...caObject(root),
  certPath: rootFiles.certificate,
  keyPath: rootFiles.key
})

const objectOf = (made: MadeRoot | MadeAuthority) => ({
  root: rootObject(made),
  ..."issuing" in made
    ? {
      issuing: {
        ...caObject(made.issuing),
        certPath: made.certPath,
        ...made.keyPath === undefined ? {} : { keyPath: made.keyPath }
      }
    }
    : {},
  transcript: made.rootFiles.transcript
})

/** `ca init`: a root in a folder that leaves the machine, and an issuing CA below it. */
export const initCommand = command(
  "init",
  "Make a root in a folder that leaves this machine, and an issuing CA below it where the configuration says. Nothing that exists is overwritten. Example: acme-svc ca init --root root --permit corp.example. Exit codes: 0, 1, 2, 3.",
  {
    root: neededText("root", "The folder of the root: its certificate, its encrypted key and the transcript."),
    rootOnly: switchFlag(
      "root-only",
      "Make only the root, with the name of --root-name. This needs no configuration and no database."
    ),
    profile: profileFlag,
    permit: permitFlag,
    passphraseFile: secretFlag("passphrase"),
    rootName: optionalText("root-name", "Common name of the root. Without it, that of the issuing CA and Root."),
    rootDays: daysFlag("root-days").pipe(
      Flag.withDefault(usualRootDays),
      Flag.withDescription("Lifetime of the root.")
    ),
    days: optional(
      daysFlag("days"),
      "Lifetime of the issuing CA. Without it, five years, but no longer than the root."
    ),
    keyType: keyTypeFlag("The kind of both keys, instead of signer.local_ca.key_type."),
    json: jsonOption
  },
  ({ days, json, keyType, passphraseFile, permit: permitted, profile, root, rootDays, rootName, rootOnly }) =>
    Effect.gen(function*() {
      const { process: { version } } = yield* Host
      const folder = yield* fromHere(root)
      const textOf = (profile?: string) => (made: MadeRoot | MadeAuthority) =>
        transcriptText(made, { profile, version })
      const tell = (made: MadeRoot | MadeAuthority, profile?: string) =>
        Console.log(json ? JSON.stringify(objectOf(made)) : textOf(profile)(made))
      if (rootOnly) {
        if (rootName === undefined) return yield* wrong("--root-only requires --root-name.")
        if (profile !== undefined || days !== undefined || permitted.length > 0) {
          return yield* wrong("--profile, --days and --permit concern an issuing CA, and --root-only makes none.")
        }
        const asked = { folder, rootDays }
        yield* Effect.mapError(refuseRoot(asked, rootName), filesFailed)
        const fields = { rootName, keyType: keyType ?? usualKeyType, passphrase: yield* newPassphrase(passphraseFile) }
        return yield* tell(yield* Effect.mapError(makeRoot(asked, fields, textOf()), filesFailed))
      }
      if (days !== undefined && days > rootDays) {
        return yield* wrong("--days: the issuing CA cannot outlive the root.")
      }
      yield* ofCa(profile, ({ local_ca, name }) =>
        Effect.gen(function*() {
          const lifetime = days ?? Math.min(usualDays, rootDays)
          const asked = { folder, rootName, rootDays, days: lifetime, keyType, permitted }
          yield* Effect.mapError(refuseAuthority(local_ca, asked), filesFailed)
          const passphrase = yield* newPassphrase(passphraseFile)
          const made = yield* Effect.mapError(makeAuthority(local_ca, asked, passphrase, textOf(name)), filesFailed)
          yield* tell(made, name)
        }))
    })
)
