import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { compromise } from "../../../operations/operator/CaCompromise.ts"
import * as campaigns from "../../../operations/operator/CampaignRecords.ts"
import { caStates } from "../../../operations/operator/CaState.ts"
import * as crls from "../../../operations/operator/CrlRecords.ts"
import { crlObject } from "../../../operations/operator/Objects.ts"
import { act, noun } from "../Act.ts"
import { Acting, Configured } from "../Acting.ts"
import { key } from "../Field.ts"
import { Int, intOf, pageOf, Time } from "../schemas/Common.ts"

/* Declares the acts about the CAs of this service and their revocation lists. */

const caMembers = {
  issuer: Schema.String.annotate({ description: "The SHA-256 of its SubjectPublicKeyInfo, in hexadecimal." }),
  subject: Schema.optionalKey(Schema.String),
  sha256: Schema.optionalKey(Schema.String),
  keyType: Schema.optionalKey(Schema.String),
  keySource: Schema.optionalKey(
    Schema.Literals(["file", "pkcs11", "transit"]).annotate({
      description: "Where its key is: in a file, in a PKCS#11 token, or in the Transit engine of a server."
    })
  ),
  notBefore: Schema.optionalKey(Time),
  notAfter: Schema.optionalKey(Time),
  chainNotAfter: Schema.optionalKey(
    Time.annotate({ description: "When the first certificate of its chain ends. No leaf is valid after that." })
  ),
  chainEndsWith: Schema.optionalKey(
    Schema.String.annotate({ description: "The subject of the certificate that ends first." })
  ),
  caState: Schema.optionalKey(
    Schema.Literals(caStates).annotate({
      description: "Whether the CA's chain is valid. The state is expiring in the last ninety days of the chain."
    })
  ),
  issuance: Schema.optionalKey(
    Schema.Literals(["waiting", "issuing", "retired", "compromised"]).annotate({
      description:
        "Whether the CA signs certificates now, begins to later, or does so no more. Each CA signs its list. Every certificate of a compromised CA is revoked."
    })
  ),
  profiles: Schema.Array(Schema.String),
  crlNumber: Schema.optionalKey(Int),
  thisUpdate: Schema.optionalKey(Time),
  nextUpdate: Schema.optionalKey(Time),
  entries: Int,
  unlisted: intOf("How many revocations the stored list does not contain yet."),
  state: Schema.Literals(["ok", "due", "expired", "missing", "stopped"]).annotate({
    description:
      "The state of the CA's revocation list. In the state stopped, nothing is revoked and no list is signed."
  }),
  trouble: Schema.optionalKey(Schema.String.annotate({ description: "Why the list is stopped." }))
}

const Ca = Schema.Struct(caMembers).annotate({ identifier: "Ca" })

const ShownCa = Schema.Struct({
  ...caMembers,
  live: intOf("How many of its certificates are neither revoked nor expired."),
  truncated: Schema.Boolean.annotate({
    description: "The counting ended after five seconds, so more may be live. A command counts all."
  })
}).annotate({ identifier: "ShownCa" })

/** Returns the names of the served profiles. */
const served = Effect.map(
  Configured.config,
  ({ profiles }) => profiles.filter(({ enabled }) => enabled).map(({ name }) => name)
)

/** Lists the CAs of the served profiles, and other CAs that have a stored revocation list. */
export const listCas = act({
  id: "listCas",
  does: "List the CAs of this service and their revocation lists",
  access: "viewer",
  input: {},
  output: pageOf(Ca),
  errors: [],
  run: () =>
    Effect.gen(function*() {
      const items = (yield* crls.list(yield* served)).map(crlObject)
      return { items, total: items.length, limit: items.length, offset: 0 }
    }),
  http: { route: "GET /api/cas" },
  cli: {
    command: "ca list",
    help: "List the local CAs: what each does now, until when, and where its key is.",
    example: "ca list",
    needsConfig: () => true,
    columns: (
      { caState = "", chainNotAfter = "", issuance = "", issuer, keySource = "", profiles, state, subject = "" }
    ) => ({
      issuer,
      subject,
      profiles: profiles.join(" "),
      issues: issuance,
      until: chainNotAfter,
      ca: caState,
      key: keySource,
      list: state
    })
  }
})

const { http: _, ...listing } = listCas

/** Lists the revocation lists of the CAs. Over HTTP this is {@link listCas}. */
const listCrls = act({
  ...listing,
  id: "listCrls",
  does: "List the revocation lists of the CAs",
  cli: {
    command: "crl list",
    help: "List the local CAs and the state of their revocation lists.",
    example: "crl list --json",
    needsConfig: () => true,
    columns: (
      {
        caState = "",
        chainNotAfter = "",
        crlNumber,
        entries,
        issuance = "",
        issuer,
        nextUpdate = "",
        profiles,
        state,
        unlisted
      }
    ) => ({
      issuer,
      profiles: profiles.join(" "),
      issues: issuance,
      number: crlNumber === undefined ? "" : String(crlNumber),
      "next update": nextUpdate,
      entries: String(entries),
      unlisted: String(unlisted),
      "ca until": chainNotAfter,
      ca: caState,
      state
    })
  }
})

/** Shows a CA, and counts its certificates. */
export const showCa = act({
  id: "showCa",
  does: "Show a CA, and count its live certificates",
  access: "viewer",
  input: { issuer: key("The CA's id, as ca list shows it.") },
  output: ShownCa,
  errors: ["not_found"],
  run: ({ issuer }) =>
    Effect.gen(function*() {
      const ca = crlObject(yield* crls.show(yield* served, issuer))
      const counted = yield* campaigns.preview(yield* Configured.config, yield* Acting.operator, { issuer })
      return { ...ca, live: counted.matched, truncated: counted.truncated }
    }),
  http: { route: "GET /api/cas/{issuer}" },
  cli: {
    command: "ca show",
    help: "Show a CA: what it does now, its dates, its key, its revocation list and how many certificates are live.",
    example: "ca show ISSUER",
    needsConfig: () => true
  }
})

/** Declares a CA compromised. */
export const compromiseCa = act({
  id: "compromiseCa",
  does: "Declare a CA compromised: revoke every certificate that it has signed, and store no more of them",
  access: "admin",
  input: { issuer: key("The CA's id, as ca list shows it.") },
  output: Schema.Struct({
    issuer: Schema.String,
    isNew: Schema.Boolean.annotate({ description: "False if the CA was compromised already." })
  }),
  errors: ["not_found"],
  run: ({ issuer }) =>
    Effect.map(
      Effect.flatMap(Acting.operator, (operator) => compromise(operator, issuer)),
      (isNew) => ({ issuer, isNew })
    ),
  http: { route: "POST /api/cas/{issuer}/compromise", status: 202, isStepUp: true },
  cli: {
    command: "ca compromise",
    help:
      "Declare a CA compromised: a worker revokes every certificate that it has signed with the reason cACompromise, and its profiles issue nothing until another CA issues.",
    example: "ca compromise ISSUER",
    confirm: ({ issuer }) =>
      Effect.succeed(
        `Revoke every certificate of the CA ${issuer}? Its profiles issue nothing until another CA issues. ` +
          "This cannot be undone."
      ),
    text: ({ isNew, issuer }) =>
      isNew
        ? `The CA ${issuer} is compromised; a worker revokes its certificates. ` +
          "Tell everybody who trusts this CA to remove it."
        : `The CA ${issuer} was compromised already.`
  }
})

/** The acts about the CAs of this service. */
export const authorityActs = noun({
  name: "authorities",
  description: "The CAs of this service and their revocation lists.",
  commands: {
    ca: "The CAs of profiles: list, make, request, sign, take over, replace, try.",
    crl: "Revocation lists of the local CAs."
  },
  acts: [listCas, listCrls, showCa, compromiseCa]
})
