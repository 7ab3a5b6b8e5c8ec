import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { compromise } from "../../../operations/operator/CaCompromise.ts"
import { caStates } from "../../../operations/operator/CaState.ts"
import * as crls from "../../../operations/operator/CrlRecords.ts"
import { crlObject } from "../../../operations/operator/Objects.ts"
import { act, noun } from "../Act.ts"
import { Acting, Configured } from "../Acting.ts"
import { key } from "../Field.ts"
import { Int, intOf, pageOf, Time } from "../schemas/Common.ts"

/* Declares the acts about the CAs of this service and their revocation lists. */

const Ca = Schema.Struct({
  issuer: Schema.String.annotate({ description: "The SHA-256 of its SubjectPublicKeyInfo, in hexadecimal." }),
  subject: Schema.optionalKey(Schema.String),
  sha256: Schema.optionalKey(Schema.String),
  keyType: Schema.optionalKey(Schema.String),
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
}).annotate({ identifier: "Ca" })

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
      const { profiles } = yield* Configured.config
      const served = profiles.filter(({ enabled }) => enabled).map(({ name }) => name)
      const items = (yield* crls.list(served)).map(crlObject)
      return { items, total: items.length, limit: items.length, offset: 0 }
    }),
  http: { route: "GET /api/cas" },
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

/** Declares a CA compromised. */
export const compromiseCa = act({
  id: "compromiseCa",
  does: "Declare a CA compromised: revoke every certificate that it has signed, and store no more of them",
  access: "admin",
  input: { issuer: key("The CA's id, as crl list shows it.") },
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
    command: "crl compromised",
    help:
      "Declare a CA compromised: a worker revokes every certificate that it has signed with the reason cACompromise, and its profiles issue nothing until another CA issues.",
    example: "crl compromised ISSUER",
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
  commands: { crl: "Revocation lists of the local CAs." },
  acts: [listCas, compromiseCa]
})
