import type { CaFacts } from "../../crypto/x509/CaFacts.ts"
import { rfc3339 } from "../../engine/Time.ts"
import type { MadeAuthority, MadeRoot } from "../../operations/operator/authority/NewAuthority.ts"
import { escaped } from "./Escaped.ts"

/* What the commands that make, request, sign and take over a CA print and write. */

/** Returns a SHA-256 in the form in which OpenSSL prints a fingerprint, because people compare the two. */
export const fingerprint = (hex: string): string => (hex.toUpperCase().match(/../g) ?? []).join(":")

type Line = readonly [label: string, value: string]

const block = (title: string, lines: ReadonlyArray<Line>): string => {
  const width = Math.max(...lines.map(([label]) => label.length))
  return [title, ...lines.map(([label, value]) => `  ${label.padEnd(width)}  ${escaped(value)}`)].join("\n")
}

const permittedText = ({ permitted }: Pick<CaFacts, "permitted">): string =>
  permitted === undefined ? "every name" : `${permitted.join(", ")}, and the names below; no IP address`

const depthText = ({ pathLength }: Pick<CaFacts, "pathLength">): string =>
  pathLength === undefined
    ? "CAs of any depth below it"
    : pathLength === 0
    ? "leaves only"
    : `${pathLength} CAs below it`

/** Returns what a certificate says, one fact on a line. The fingerprint of a draft is not known. */
export const linesOf = (facts: Omit<CaFacts, "sha256"> & { readonly sha256?: string }): ReadonlyArray<Line> => [
  ["subject", facts.subject],
  ["serial", facts.serial],
  ...facts.sha256 === undefined ? [] : [["SHA-256", fingerprint(facts.sha256)] as const],
  ["key", facts.keyType],
  ["SHA-256 of key", fingerprint(facts.keySha256)],
  ["from", rfc3339(facts.notBefore)],
  ["until", rfc3339(facts.notAfter)],
  ["issues", depthText(facts)],
  ["for", permittedText(facts)]
]

/** Returns the facts of a certificate below a title. */
export const certificateText = (
  title: string,
  facts: Parameters<typeof linesOf>[0],
  more: ReadonlyArray<Line> = []
): string => block(title, [...linesOf(facts), ...more])

/** Returns the facts of a certificate as an object for programs. */
export const caObject = ({ notAfter, notBefore, pathLength, permitted, ...facts }: CaFacts) => ({
  ...facts,
  notBefore: rfc3339(notBefore),
  notAfter: rfc3339(notAfter),
  ...pathLength === undefined ? {} : { pathLength },
  ...permitted === undefined ? {} : { permitted }
})

/** Who makes a CA, for the transcript. */
export interface Ceremony {
  readonly version: string
  /** The profile of the issuing CA. Undefined if only a root is made. */
  readonly profile: string | undefined
}

const numbered = (steps: ReadonlyArray<string>): string =>
  ["What is left to do", ...steps.map((step, at) => `  ${at + 1}. ${step}`), ""].join("\n")

const rootText = ({ root, rootFiles }: MadeRoot): string =>
  certificateText("Root", root, [
    ["certificate", rootFiles.certificate],
    ["private key", `${rootFiles.key}, encrypted with the passphrase`]
  ])

/** Returns where a key is that is in no file. */
export const placeOfKey = (keySource: MadeAuthority["keySource"]): string =>
  keySource === "transit" ? "the Transit engine" : "the token"

const issuingText = ({ certPath, isKeyEncrypted, issuing, keyPath, keySource }: MadeAuthority): string =>
  certificateText("Issuing CA", issuing, [
    ["certificate", `${certPath}, followed by the root`],
    [
      "private key",
      keyPath === undefined
        ? `in ${placeOfKey(keySource)}`
        : `${keyPath}, ${isKeyEncrypted ? "encrypted with the configured passphrase" : "not encrypted"}`
    ]
  ])

/** Returns the transcript of a ceremony: what was made, where it is, and what is left to do. */
export const transcriptText = (made: MadeRoot | MadeAuthority, { profile, version }: Ceremony): string => {
  const isBoth = "issuing" in made
  const folder = escaped(made.folder)
  return [
    block(isBoth ? "A root and an issuing CA were made" : "A root was made", [
      ["at", rfc3339(made.at)],
      ["by", `acme-svc ${version}`],
      ...profile === undefined ? [] : [["for profile", profile] as const]
    ]),
    rootText(made),
    ...isBoth ? [issuingText(made)] : [],
    numbered([
      isBoth
        ? `Copy ${folder} to two media, keep them in two places, and delete it on this machine.`
        : `Copy ${folder} to a second medium, and keep both in two places.`,
      "Keep the passphrase in a third place. Without both, no other CA can be put below the root.",
      `Give ${escaped(made.rootFiles.certificate)} to the machines that shall trust it, and compare its SHA-256.`,
      isBoth
        ? "Try the key of the issuing CA with `acme-svc ca test-sign`. Then start the service."
        : "Make a request with `acme-svc ca csr` where the service is, and sign it here with `acme-svc ca sign`."
    ])
  ].join("\n\n")
}
