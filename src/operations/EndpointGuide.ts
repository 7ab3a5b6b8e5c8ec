import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { loadCa } from "../crypto/x509/CaMaterial.ts"
import { sharedSeconds } from "../engine/queue/SharedClock.ts"
import { Issuers } from "../services/signing/Issuers.ts"
import type { ProfileConfig } from "../settings/AppConfig.ts"
import { certificateKinds } from "../settings/CertificateKinds.ts"
import type { ClientLine } from "./ClientLines.ts"
import { clientLines, unknownKey } from "./ClientLines.ts"

/* What somebody needs who wants a certificate of a profile: what it is, how to trust its CA, and how to ask. */

/** What stands in the place of an identifier of a credential that is not known. */
const unknownKid = "KID"

/** The root that a machine must trust. */
interface TrustedRoot {
  /** The name, most specific part last. */
  readonly subject: string
  /** The SHA-256 of the certificate, in upper-case hexadecimal with colons, as OpenSSL prints it. */
  readonly sha256: string
  readonly url: string
}

/** What a profile says about itself. */
export interface EndpointGuide {
  readonly profile: string
  readonly directory: string
  readonly needsCredential: boolean
  /** The URL of the terms of service. Empty if there are none. */
  readonly terms: string
  /** The types of challenges by which clients prove names. */
  readonly challenges: ReadonlyArray<string>
  /** The kinds of certificates that a client may name. Empty if there is nothing to choose. */
  readonly kinds: ReadonlyArray<{ readonly name: string; readonly description: string }>
  /** Absent if the CA is not one of this service. */
  readonly root: TrustedRoot | undefined
  /** Commands for a shell of Debian that make a machine trust the root. Empty if there is no root. */
  readonly trustLines: ReadonlyArray<string>
  readonly clients: ReadonlyArray<ClientLine>
}

const trusting = ({ sha256, url }: TrustedRoot): ReadonlyArray<string> => [
  `curl --silent --show-error --insecure --output acme-svc.crt ${url}`,
  `openssl x509 -in acme-svc.crt -noout -fingerprint -sha256 | grep -F ${sha256}`,
  "install -m 0644 acme-svc.crt /usr/local/share/ca-certificates/acme-svc.crt",
  "update-ca-certificates"
]

/**
 * Returns the guide of a profile. It says no more than the directory and the CA certificate say, which everybody may
 * read. `kid` is the identifier of the reader's credential, if it is known.
 */
export const endpointGuide = Effect.fnUntraced(function*(profile: ProfileConfig, baseUrl: string, kid = unknownKid) {
  const { of } = yield* Issuers
  const issuer = of(profile.name, yield* sharedSeconds)
  const base = `${baseUrl}/profile/${profile.name}`
  const directory = `${base}/directory`
  const anchor = issuer && Result.getOrUndefined(loadCa(issuer.anchorPem, undefined))
  const root = anchor === undefined ? undefined : {
    subject: anchor.subjectText.split("\n").join(", "),
    sha256: anchor.fingerprint.toUpperCase().replaceAll(/..(?=.)/g, "$&:"),
    url: `${base}/ca.pem`
  }
  const { byName, isOffered } = certificateKinds(profile)
  const needsCredential = profile.eab.enabled
  return {
    profile: profile.name,
    directory,
    needsCredential,
    terms: profile.meta.terms_of_service,
    challenges: profile.challenge.enabled,
    kinds: isOffered ? [...byName.values()].map(({ description, name }) => ({ name, description })) : [],
    root,
    trustLines: root === undefined ? [] : trusting(root),
    clients: clientLines({
      directory,
      credential: needsCredential ? { kid, hmacKey: unknownKey } : undefined,
      names: undefined
    })
  } satisfies EndpointGuide
})

/** A part of the guide: a heading, sentences, and what to paste. */
export interface GuidePart {
  readonly heading: string
  readonly sentences: ReadonlyArray<string>
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>
  /** What to paste, each with the words before it. */
  readonly pasted: ReadonlyArray<{ readonly before: string; readonly text: string }>
}

/** Returns the parts of a guide in the order in which somebody follows them. */
export const guideParts = (
  { challenges, clients, directory, kinds, needsCredential, profile, root, terms, trustLines }: EndpointGuide
): ReadonlyArray<GuidePart> => [
  {
    heading: `The ACME endpoint ${profile}`,
    sentences: ["An ACME client gets and renews TLS certificates here without anybody's help."],
    facts: [
      ["Directory", directory],
      [
        "Credential",
        needsCredential ? "needed: ask the operator for a key identifier (KID) and an HMAC key" : "not needed"
      ],
      ["Names are proved by", challenges.join(", ")],
      ...kinds.map(({ description, name }): readonly [string, string] => [`Kind ${name}`, description]),
      ...terms === "" ? [] : [["Terms of service", terms] as const]
    ],
    pasted: []
  },
  ...root === undefined ? [] : [{
    heading: "1. Trust the CA",
    sentences: [
      "Compare the fingerprint with one that reached you in another way, because this page could be forged too. On Debian and Ubuntu:"
    ],
    facts: [["Root", root.subject], ["SHA-256", root.sha256], ["Certificate", root.url]] as const,
    pasted: [{ before: "", text: trustLines.join("\n") }]
  }],
  {
    heading: `${root === undefined ? 1 : 2}. Ask for a certificate`,
    sentences: ["Replace host.example.org with the name of your host. Every client with the directory above works."],
    facts: [],
    pasted: clients.map(({ client, place, text }) => ({
      before: place === undefined ? `${client}:` : `${client}, ${place}:`,
      text
    }))
  }
]

const indented = (text: string): string => text.split("\n").map((line) => `  ${line}`).join("\n")

/** Returns a guide as plain text. */
export const guideText = (guide: EndpointGuide): string =>
  guideParts(guide).map(({ facts, heading, pasted, sentences }) => {
    const width = Math.max(0, ...facts.map(([name]) => name.length))
    return [
      heading,
      ...sentences,
      ...facts.length === 0 ? [] : [facts.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`).join("\n")],
      ...pasted.map(({ before, text }) => before === "" ? indented(text) : `${before}\n\n${indented(text)}`)
    ].join("\n\n")
  }).join("\n\n\n") + "\n"
