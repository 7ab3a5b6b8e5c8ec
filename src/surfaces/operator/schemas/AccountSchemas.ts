import * as Schema from "effect/Schema"
import { created, Id, Int, intOf, Time } from "./Common.ts"

/* Accounts of ACME clients and the credentials that bind them. */

/** The status words of an account (RFC 8555 section 7.1.6). */
export const AccountStatus = Schema.Literals(["valid", "deactivated", "revoked"])

const account = {
  id: Id,
  profile: Schema.String,
  status: AccountStatus,
  contact: Schema.optionalKey(Schema.Array(Schema.String)),
  termsOfServiceAgreed: Schema.optionalKey(Schema.Boolean),
  pubkeyFingerprint: Schema.String.annotate({
    description: "The SHA-256 of the SubjectPublicKeyInfo, in hexadecimal."
  }),
  keyType: Schema.String.annotate({ examples: ["ecdsa-p256"] }),
  eabKid: Schema.optionalKey(Id),
  createdAt: Time,
  createdIp: Schema.optionalKey(Schema.String),
  createdPtr: Schema.optionalKey(Schema.String),
  lastSeenAt: Schema.optionalKey(Time),
  lastSeenIp: Schema.optionalKey(Schema.String),
  lastSeenPtr: Schema.optionalKey(Schema.String)
}

/** An account as lists show it. */
export const Account = Schema.Struct(account).annotate({ identifier: "Account" })

/** An account with its counts and its credential. */
export const AccountDetail = Schema.Struct({
  ...account,
  orderCount: Int,
  liveCertificates: intOf("Certificates that are neither revoked nor expired.")
}).annotate({ identifier: "AccountDetail" })

/** The status words of a credential. */
export const CredentialStatus = Schema.Literals(["active", "revoked"])

const credential = {
  kid: Id,
  label: Schema.optionalKey(Schema.String),
  profile: Schema.optionalKey(Schema.String.annotate({ description: "The only profile that accepts it." })),
  status: CredentialStatus,
  createdAt: Time,
  accounts: intOf("How many accounts it has bound.")
}

/** A credential of external account binding (RFC 8555 section 7.3.4), without its secret. */
export const Credential = Schema.Struct(credential).annotate({ identifier: "Credential" })

/** A new credential, with its secret. */
export const MintedCredential = Schema.Struct({
  ...credential,
  hmacKey: Schema.String.annotate({ description: "The secret, base64url. It is shown only now." })
}).annotate(created("MintedCredential"))
