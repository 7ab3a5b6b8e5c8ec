import * as Schema from "effect/Schema"
import { kindPattern } from "../../../domain/CertificateKind.ts"
import { mostPatterns, namePattern } from "../../../domain/CredentialScope.ts"
import { eabStatuses } from "../../../operations/operator/Eab.ts"
import { flag, optional, textsOf, time, whole } from "../Field.ts"
import { created, Id, intOf, Time } from "../schemas/Common.ts"

/* What the acts about credentials take and answer. */

const credential = {
  kid: Id,
  externalKid: Schema.optionalKey(
    Schema.String.annotate({ description: "The identifier that another server gave to it. Clients may use either." })
  ),
  label: Schema.optionalKey(Schema.String),
  profile: Schema.optionalKey(Schema.String.annotate({ description: "The only profile that accepts it." })),
  status: Schema.Literals(eabStatuses),
  createdAt: Time,
  accounts: intOf("How many accounts it has bound."),
  names: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({ description: "The patterns of the names that its accounts may order." })
  ),
  wildcards: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether its accounts may order wildcards within the names." })
  ),
  kinds: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({ description: "The kinds of certificates that its accounts may order." })
  ),
  validitySeconds: Schema.optionalKey(intOf("The longest lifetime of a certificate.")),
  ordersPerDay: Schema.optionalKey(
    intOf("How many orders its accounts may place in a day. Orders that replace a certificate do not count.")
  ),
  maxAccounts: Schema.optionalKey(intOf("How many accounts it may bind.")),
  expiresAt: Schema.optionalKey(Time),
  prevalidated: Schema.optionalKey(
    Schema.Boolean.annotate({ description: "Whether the names need no challenge." })
  )
}

/** The members that say what a credential may ask for. A member that is left out restricts nothing. */
export const scopeFields = {
  names: optional(
    textsOf("A pattern of names: host.example, *.example for one label, **.example for any depth.", {
      shown: "pattern",
      takes: `1 to ${mostPatterns} patterns such as host.example, *.example or **.example, in lower case`,
      most: mostPatterns,
      read: namePattern
    })
  ),
  wildcards: optional(flag("Wildcards may be ordered within the names.")),
  kinds: optional(
    textsOf("A kind of certificates that may be ordered.", {
      shown: "kind",
      takes: "names of kinds of certificates",
      most: 100,
      read: (text) => kindPattern.test(text) ? text : undefined
    })
  ),
  validitySeconds: optional(
    whole("The longest lifetime of a certificate, in seconds.", { least: 3600, most: 315_619_200 })
  ),
  ordersPerDay: optional(
    whole("How many orders all its accounts may place in a day. Orders that replace a certificate do not count.", {
      least: 1,
      most: 1_000_000
    })
  ),
  maxAccounts: optional(whole("How many accounts it may bind.", { least: 1, most: 1_000_000 })),
  expiresAt: optional(time("From this time on, it binds no account.")),
  prevalidated: optional(flag("The names need no challenge. The credential must be restricted to names."))
}

/** The names of the members in {@link scopeFields}. */
export const scopeMembers = Object.keys(scopeFields) as ReadonlyArray<keyof typeof scopeFields>

/** A credential, without its secret. */
export const Credential = Schema.Struct(credential).annotate({ identifier: "Credential" })

/** A new credential, with its secret. */
export const MintedCredential = Schema.Struct({
  ...credential,
  hmacKey: Schema.String.annotate({ description: "The secret, base64url. It is shown only now." })
}).annotate(created("MintedCredential"))
