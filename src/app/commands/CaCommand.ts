import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Entropy } from "../../crypto/Entropy.ts"
import { importAuthority } from "../../operations/operator/authority/AuthorityAnswer.ts"
import { requestAuthority } from "../../operations/operator/authority/AuthorityRequest.ts"
import { signTrial } from "../../services/signing/TrialSignature.ts"
import { caObject, certificateText, fingerprint, placeOfKey } from "../../surfaces/cli/CeremonyText.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { escapedLines } from "../../surfaces/cli/Escaped.ts"
import { authorityActs } from "../../surfaces/operator/acts/AuthorityActs.ts"
import { filesFailed } from "../CommandFailed.ts"
import { fromHere } from "../Here.ts"
import { actCommand } from "./ActCommand.ts"
import { authorities } from "./AuthoritiesHere.ts"
import { initCommand } from "./CaInitCommand.ts"
import { keyTypeFlag, ofCa, profileFlag } from "./CaProfile.ts"
import { retireCommand, rotateCommand } from "./CaRotateCommand.ts"
import { signCommand } from "./CaSignCommand.ts"
import { command } from "./Descriptor.ts"
import { textIn } from "./FileInput.ts"
import { jsonOption, optionalText, switchFlag } from "./Flags.ts"
import { print } from "./Print.ts"

const csrCommand = command(
  "csr",
  "Print a request for the certificate of an issuing CA; if the configured key does not exist, it is made. Nothing that exists is overwritten. Example: acme-svc ca csr --out issuing.csr. Exit codes: 0, 1, 2, 3.",
  {
    profile: profileFlag,
    keyType: keyTypeFlag("The kind of a new key, instead of signer.local_ca.key_type."),
    out: optionalText("out", "Write the request to this new file, and not to standard output."),
    json: jsonOption
  },
  ({ json, keyType, out, profile }) =>
    ofCa(profile, ({ local_ca }) =>
      Effect.gen(function*() {
        const path = out === undefined ? undefined : yield* fromHere(out)
        const made = yield* Effect.mapError(requestAuthority(local_ca, { keyType, out: path }), filesFailed)
        const { keySha256, keySource, request } = made
        yield* Console.error(escapedLines(
          [
            `${made.isNew ? "Made the key" : "The request is for the existing key"} in ${
              made.keyPath ?? placeOfKey(keySource)
            } (${made.keyType}).`,
            `SHA-256 of the key: ${fingerprint(keySha256)}`
          ].join("\n")
        ))
        if (json) return yield* Console.log(JSON.stringify({ ...made, ...path === undefined ? {} : { out: path } }))
        if (path === undefined) yield* Console.log(request)
      }))
)

const importCommand = command(
  "import",
  "Take over the certificate that a root gave to a profile's CA. Before anything is written, its key, chain, usages, constraints and dates are checked. Example: acme-svc ca import issuing.pem. Exit codes: 0, 1, 2, 3.",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription(
        "The certificates of the chain up to the root, PEM in any order, or - for standard input."
      )
    ),
    profile: profileFlag,
    replace: switchFlag("replace", "Replace another certificate, and keep it beside the new one."),
    json: jsonOption
  },
  ({ file, json, profile, replace }) =>
    ofCa(profile, ({ local_ca }) =>
      Effect.gen(function*() {
        const text = yield* textIn("file", file)
        const { chain, setAside, wasThere } = yield* Effect.mapError(
          importAuthority(local_ca, text, replace),
          filesFailed
        )
        const [issuing, ...above] = chain
        const object = {
          path: local_ca.cert_path,
          wasThere,
          ...setAside === undefined ? {} : { setAside },
          chain: chain.map(caObject)
        }
        yield* print(json, object, () =>
          [
            wasThere
              ? `${local_ca.cert_path} already holds exactly this chain.`
              : `Wrote the chain of ${chain.length} certificate(s) to ${local_ca.cert_path}.`,
            ...setAside === undefined ? [] : [`The former certificate is in ${setAside}.`],
            ...issuing === undefined ? [] : [certificateText("Issuing CA", issuing)],
            ...above.map((facts) => certificateText(`Above it`, facts)),
            ...wasThere ? [] : ["A running service reads it after SIGHUP."]
          ].join("\n"))
      }))
)

const testSignCommand = command(
  "test-sign",
  "Sign a certificate that is thrown away with the configured key, wherever it is, and check it. Nothing is stored. Example: acme-svc ca test-sign. Exit codes: 0, 1, 2, 3.",
  {
    profile: Argument.String("profile").pipe(
      Argument.optional,
      Argument.withDescription("The profile. Without it, default, or the only one."),
      Argument.map(Option.getOrUndefined)
    ),
    json: jsonOption
  },
  ({ json, profile }) =>
    ofCa(profile, ({ local_ca, name: profileName }) =>
      Effect.gen(function*() {
        const { ca, milliseconds, name } = yield* Effect.mapError(signTrial(local_ca), filesFailed)
        const object = {
          profile: profileName,
          issuer: ca.issuerId,
          subject: ca.subjectText.split("\n").join(", "),
          keySource: local_ca.key_source,
          name,
          milliseconds,
          result: "signed and verified; nothing was stored"
        }
        yield* print(json, object, () => renderDetail(object))
      }), "profile")
)

/** `ca`: the CAs of profiles. Most commands need no service that runs. */
export const caCommand = actCommand(
  authorityActs,
  "ca",
  {
    ca: [
      Command.provide(initCommand, Entropy.layer),
      Command.provide(csrCommand, Entropy.layer),
      Command.provide(signCommand, Entropy.layer),
      Command.provide(importCommand, Entropy.layer),
      Command.provide(rotateCommand, Entropy.layer),
      Command.provide(retireCommand, Entropy.layer),
      Command.provide(testSignCommand, Entropy.layer)
    ]
  },
  { "ca list": authorities, "ca show": authorities }
)
