import * as Schema from "effect/Schema"
import { created, Id, Time } from "./Common.ts"

/* Accounts of ACME clients and the credentials that bind them. */

/** The status words of an account (RFC 8555 section 7.1.6). */
export const AccountStatus = Schema.Literal("valid", "deactivated", "revoked")

const account = {
  id: Id,
  profile: Schema.String,
  status: AccountStatus,
  contact: Schema.optional(Schema.Array(Schema.String)),
  termsOfServiceAgreed: Schema.optional(Schema.Boolean),
  pubkeyFingerprint: Schema.String.annotations({
    description: "The SHA-256 of the SubjectPublicKeyInfo, in hexadecimal."
  }),
  keyType: Schema.String.annotations({ examples: ["ecdsa-p256"] }),
  eabKid: Schema.optional(Id),
  createdAt: Time,
  createdIp: Schema.optional(Schema.String),
  createdPtr: Schema.optional(Schema.String),
  lastSeenAt: Schema.optional(Time),
  lastSeenIp: Schema.optional(Schema.String),
  lastSeenPtr: Schema.optional(Schema.String)
}

/** An account as lists show it. */
export const Account = Schema.Struct(account).annotations({ identifier: "Account" })

/** An account with its counts and its credential. */
export const AccountDetail = Schema.Struct({
  ...account,
  orderCount: Schema.Int,
  liveCertificates: Schema.Int.annotations({ description: "Certificates that are neither revoked nor expired." })
}).annotations({ identifier: "AccountDetail" })

/** The status words of a credential. */
export const CredentialStatus = Schema.Literal("active", "revoked")

const credential = {
  kid: Id,
  label: Schema.optional(Schema.String),
  profile: Schema.optional(Schema.String.annotations({ description: "The only profile that accepts it." })),
  status: CredentialStatus,
  createdAt: Time,
  accounts: Schema.Int.annotations({ description: "How many accounts it has bound." })
}

/** A credential of external account binding (RFC 8555 section 7.3.4), without its secret. */
export const Credential = Schema.Struct(credential).annotations({ identifier: "Credential" })

/** A new credential, with its secret. */
export const MintedCredential = Schema.Struct({
  ...credential,
  hmacKey: Schema.String.annotations({ description: "The secret, base64url. It is shown only now." })
}).annotations(created("MintedCredential"))
