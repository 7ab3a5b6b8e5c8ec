import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { caStates } from "../../../operations/operator/CaState.ts"
import * as crls from "../../../operations/operator/CrlRecords.ts"
import { crlObject } from "../../../operations/operator/Objects.ts"
import { act, noun } from "../Act.ts"
import { Configured } from "../Acting.ts"
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
    Schema.Literals(["waiting", "issuing", "retired"]).annotate({
      description: "Whether the CA signs certificates now, begins to later, or does so no more. Each CA signs its list."
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

/** The acts about the CAs of this service. */
export const authorityActs = noun({
  name: "authorities",
  description: "The CAs of this service and their revocation lists.",
  commands: { crl: "Revocation lists of the local CAs." },
  acts: [listCas]
})
