import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { splitPem } from "../../../crypto/asn1/Pem.ts"
import { leafKeys } from "../../../crypto/keys/LeafKeys.ts"
import { commonNameSources, unrequestedWords } from "../../../domain/CertificateKind.ts"
import { signerBackends } from "../../../domain/SignerBackend.ts"
import { kindsOf, namedKind, servedProfile } from "../../../operations/operator/KindRecords.ts"
import { tryCsr } from "../../../operations/operator/KindTrial.ts"
import { renderTrial } from "../../cli/KindText.ts"
import { act, noun } from "../Act.ts"
import { Configured } from "../Acting.ts"
import type { Field } from "../Field.ts"
import { name, ofProfile, optional, textOf, texts } from "../Field.ts"
import { pageOf, Problem, Time } from "../schemas/Common.ts"

/* Declares the acts about kinds of certificates (docs/configure/kinds.md). */

const Backend = Schema.Literals(signerBackends)

const ofLocalCa = "Absent if the signer decides it (relay, custom)."

const Kind = Schema.Struct({
  profile: Schema.String,
  kind: Schema.String,
  isDefault: Schema.Boolean.annotate({ description: "Whether an order without a kind gets this kind." }),
  description: Schema.String,
  backend: Backend,
  validity: Schema.optionalKey(Schema.String.annotate({ description: ofLocalCa, examples: ["90d"] })),
  usages: Schema.optionalKey(Schema.Array(Schema.String).annotate({ description: ofLocalCa })),
  commonName: Schema.optionalKey(Schema.Literals(commonNameSources).annotate({ description: ofLocalCa })),
  subject: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  policies: Schema.optionalKey(Schema.Array(Schema.String).annotate({ description: ofLocalCa })),
  keys: Schema.Array(Schema.Literals(leafKeys)),
  unrequested: Schema.Literals(unrequestedWords),
  upstream: Schema.optionalKey(
    Schema.String.annotate({ description: "The profile that a relay asks its upstream for." })
  )
}).annotate({ identifier: "Kind" })

/** Lists the kinds of certificates of the served profiles. */
export const listKinds = act({
  id: "listKinds",
  does: "List the kinds of certificates of the served profiles",
  access: "viewer",
  input: ofProfile,
  output: pageOf(Kind),
  errors: [],
  run: ({ profile }) =>
    Effect.gen(function*() {
      const items = yield* kindsOf(yield* Configured.config, profile)
      return { items, total: items.length, limit: items.length, offset: 0 }
    }),
  http: { route: "GET /api/kinds" },
  cli: {
    command: "kinds list",
    help: "List the kinds of certificates, as configured on disk.",
    example: "kinds list --profile default",
    needsConfig: () => true,
    columns: ({
      commonName = "",
      description,
      isDefault,
      keys,
      kind,
      policies = [],
      profile,
      subject = {},
      unrequested,
      upstream = "",
      usages = [],
      validity = ""
    }) => ({
      profile,
      kind,
      default: isDefault ? "yes" : "",
      validity,
      usages: usages.join(" "),
      keys: keys.join(" "),
      "common name": commonName,
      subject: Object.entries(subject).map((one) => one.join("=")).join(", "),
      policies: policies.join(" "),
      unrequested,
      upstream,
      description
    })
  }
})

const csrLabels = ["CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST"]

/** Reads a CSR that is PEM, base64 or base64url. Returns the octets, or the end of a sentence that says what is wrong. */
const readCsr = (text: string): Uint8Array | string => {
  if (text.trim() === "") return "takes a CSR; this is empty"
  if (text.includes("-----")) {
    const blocks = splitPem(text, "before")
    if (Result.isFailure(blocks)) return `is not PEM: ${blocks.failure.detail}`
    const [block, ...more] = blocks.success
    if (block === undefined || more.length > 0) return `takes one CSR; this PEM has ${blocks.success.length} blocks`
    return csrLabels.includes(block.label)
      ? block.der
      : `takes the PEM of a CERTIFICATE REQUEST; this is the PEM of a ${block.label.slice(0, 64)}`
  }
  const compact = text.replaceAll(/\s/g, "")
  // The decoder of the runtime reads both alphabets.
  const der = /^[A-Za-z0-9+/_-]+={0,2}$/.test(compact) ? Buffer.from(compact, "base64") : Buffer.of()
  return der.length === 0 ? "takes a CSR: PEM, or DER as base64" : der
}

const csr: Field<Uint8Array> = {
  ...textOf({
    description: "The CSR: PEM, or DER as base64 or base64url.",
    help: "File with the CSR, PEM or DER, or - for standard input.",
    shown: "file",
    takes: "a CSR: PEM, or DER as base64",
    read: (text) => {
      const read = readCsr(text)
      return typeof read === "string" ? undefined : read
    }
  }),
  fault: (written) => {
    const read = typeof written === "string" ? readCsr(written) : undefined
    return typeof read === "string" ? read : undefined
  },
  isFile: true
}

const Draft = Schema.Struct({
  subject: Schema.String,
  issuer: Schema.String,
  notBefore: Time,
  notAfter: Time,
  keyType: Schema.String,
  sans: Schema.Array(Schema.String),
  sansCritical: Schema.Boolean,
  keyUsage: Schema.Array(Schema.String),
  extendedKeyUsage: Schema.Array(Schema.String),
  policies: Schema.Array(Schema.String),
  crlUrls: Schema.Array(Schema.String),
  caIssuersUrls: Schema.Array(Schema.String)
}).annotate({ identifier: "Draft", description: "A certificate that was not signed." })

const KindTrial = Schema.Struct({
  profile: Schema.String,
  kind: Schema.String,
  backend: Backend,
  outcome: Schema.Literals(["accepted", "refused"]),
  refusal: Schema.optionalKey(Problem),
  certificate: Schema.optionalKey(Draft).annotateKey({ description: ofLocalCa }),
  notGranted: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description: "Extensions that the CSR asks for and the certificate would lack, by name or OID."
    })
  )
}).annotate({ identifier: "KindTrial" })

/** Shows which certificate a CSR would become. */
export const tryKind = act({
  id: "tryKind",
  does: "Show which certificate a CSR would become; nothing is signed or stored",
  access: "operator",
  input: {
    csr,
    profile: name("The name of the profile."),
    kind: optional(name("The name of the kind. The default is the kind that an order without a kind gets.")),
    names: texts("The names of the order.", {
      shown: "name",
      help: "A name of the order; may be given several times."
    })
  },
  output: KindTrial,
  errors: [],
  run: ({ csr, kind, names, profile }) =>
    Effect.gen(function*() {
      const served = yield* servedProfile(yield* Configured.config, profile)
      return yield* tryCsr(served, { csr, names, kind: yield* namedKind(served, kind) })
    }),
  http: { route: "POST /api/kinds/try" },
  cli: {
    command: "kinds try",
    help: "Show which certificate a CSR would become, or how a client would be refused. Nothing is signed or stored.",
    example: "kinds try request.pem --profile default --name www.example.org",
    args: ["csr"],
    flags: { names: { flag: "name" } },
    needsConfig: () => true,
    text: renderTrial,
    faults: ({ refusal }) => refusal === undefined ? [] : [{ code: 3, message: "A client would be refused." }]
  }
})

/** The acts about kinds of certificates. */
export const kindActs = noun({
  name: "kinds",
  description: "Kinds of certificates.",
  commands: { kinds: "Kinds of certificates." },
  acts: [listKinds, tryKind]
})
