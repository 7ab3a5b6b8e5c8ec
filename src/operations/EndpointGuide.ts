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

/** A listener whose certificate is signed by nobody else. */
export interface OwnListener {
  /** Host and port. */
  readonly host: string
  /** The SHA-256 of the certificate, in lower-case hexadecimal. */
  readonly sha256: string
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
  /**
   * Commands for a shell of Debian that make a machine trust the root, and the listener if no root vouches for it.
   * Empty if there is no root.
   */
  readonly trustLines: ReadonlyArray<string>
  readonly clients: ReadonlyArray<ClientLine>
}

/** A fingerprint as OpenSSL prints it: upper-case hexadecimal with colons. */
const asOpenssl = (sha256: string): string => sha256.toUpperCase().replaceAll(/..(?=.)/g, "$&:")

const checkedAndInstalled = (file: string, sha256: string): ReadonlyArray<string> => [
  `openssl x509 -in ${file} -noout -fingerprint -sha256 | grep -F ${sha256}`,
  `install -m 0644 ${file} /usr/local/share/ca-certificates/${file}`
]

const fetchedFromListener = ({ host, sha256 }: OwnListener): ReadonlyArray<string> => [
  `openssl s_client -connect ${host} < /dev/null 2> /dev/null | openssl x509 -out acme-svc-server.crt`,
  ...checkedAndInstalled("acme-svc-server.crt", asOpenssl(sha256))
]

/** Returns commands of which each runs only if the one before it has succeeded, so that no wrong root is installed. */
const trusting = ({ sha256, url }: TrustedRoot, listener: OwnListener | undefined): ReadonlyArray<string> =>
  [
    `curl --silent --show-error --insecure --output acme-svc.crt ${url}`,
    ...checkedAndInstalled("acme-svc.crt", sha256),
    ...listener === undefined ? [] : fetchedFromListener(listener),
    "update-ca-certificates"
  ].map((line, index, { length }) => index < length - 1 ? `${line} &&` : line)

/** The reader of a guide, as far as it is known. */
interface Reader {
  /** The identifier of the reader's credential. */
  readonly kid?: string | undefined
  /** The listener, if its certificate is one that the service has made itself, so that no root vouches for it. */
  readonly listener?: OwnListener | undefined
}

/**
 * Returns the guide of a profile. It says no more than the directory, the CA certificate and a connection say, which
 * everybody may read.
 */
export const endpointGuide = Effect.fnUntraced(function*(
  profile: ProfileConfig,
  baseUrl: string,
  { kid = unknownKid, listener }: Reader = {}
) {
  const { of } = yield* Issuers
  const issuer = of(profile.name, yield* sharedSeconds)
  const base = `${baseUrl}/profile/${profile.name}`
  const directory = `${base}/directory`
  const anchor = issuer && Result.getOrUndefined(loadCa(issuer.anchorPem, undefined))
  const root = anchor === undefined ? undefined : {
    subject: anchor.subjectText.split("\n").join(", "),
    sha256: asOpenssl(anchor.fingerprint),
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
    trustLines: root === undefined ? [] : trusting(root, listener),
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
