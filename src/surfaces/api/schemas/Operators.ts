import { Schema } from "effect"
import { created, Id, Time } from "./Common.ts"

/* Operators, their sessions and tokens (docs/decisions/admin.md, "Operators", "Sessions" and "Tokens"). */

/** The roles of operators. */
export const Role = Schema.Literal("viewer", "operator", "admin")

/** The status words of an operator. */
export const OperatorStatus = Schema.Literal("active", "disabled")

const operator = {
  id: Id,
  username: Schema.String,
  status: OperatorStatus,
  role: Role,
  totpEnabled: Schema.Boolean,
  contact: Schema.optional(Schema.String),
  createdAt: Time,
  updatedAt: Time,
  lastLoginAt: Schema.optional(Time),
  knownLoginIps: Schema.Array(Schema.String)
}

/** An operator as lists show them. */
export const Operator = Schema.Struct(operator).annotations({ identifier: "Operator" })

/** An operator with the state of their account. */
export const OperatorDetail = Schema.Struct({
  ...operator,
  enrolmentPending: Schema.Boolean,
  recoveryCodesRemaining: Schema.Int,
  activeSessions: Schema.Int
}).annotations({ identifier: "OperatorDetail" })

/** A session of an operator. */
export const SessionRow = Schema.Struct({
  id: Schema.String.annotations({ description: "The first 16 hexadecimal digits of the hash of its token." }),
  state: Schema.Literal("pending_mfa", "active"),
  createdAt: Time,
  expiresAt: Time,
  lastSeenAt: Time,
  createdIp: Schema.optional(Schema.String),
  userAgent: Schema.optional(Schema.String),
  current: Schema.optional(Schema.Literal(true))
}).annotations({ identifier: "SessionRow" })

const csrf = {
  csrfToken: Schema.String.annotations({ description: "For the header X-CSRF-Token of every change." }),
  expiresAt: Time
}

/** What the second factor still needs. */
export const Step = Schema.Literal("verify", "enrol")

const SessionUser = Schema.Struct({
  id: Id,
  username: Schema.String,
  role: Role,
  totpEnabled: Schema.Boolean
}).annotations({ identifier: "SessionUser" })

/** A session that is signed in. */
export const Session = Schema.Struct({ user: SessionUser, ...csrf }).annotations({ identifier: "Session" })

/** A session that still needs its second factor. */
export const HalfSession = Schema.Struct({ mfaRequired: Schema.Literal(true), step: Step, ...csrf }).annotations({
  identifier: "HalfSession"
})

/** Codes that stand in for a lost second factor, each once. */
export const RecoveryCodes = Schema.Struct({ recoveryCodes: Schema.Array(Schema.String) }).annotations({
  identifier: "RecoveryCodes"
})

/** A session with the recovery codes of the factor that was enrolled just now. */
export const EnrolledSession = Schema.Struct({ ...Session.fields, ...RecoveryCodes.fields }).annotations({
  identifier: "EnrolledSession"
})

/** The secret of a second factor, for an authenticator. */
export const TotpSecret = Schema.Struct({
  secret: Schema.String.annotations({ description: "Base32. It is shown this once." }),
  uri: Schema.String,
  algorithm: Schema.String,
  digits: Schema.Int,
  period: Schema.Int
}).annotations(created("TotpSecret"))

/** The state of the caller's second factor. */
export const SecondFactor = Schema.Struct({
  totpEnabled: Schema.Boolean,
  enrolmentPending: Schema.Boolean,
  recoveryCodesRemaining: Schema.Int
}).annotations({ identifier: "SecondFactor" })

const token = {
  id: Id,
  name: Schema.String,
  user: Schema.String,
  role: Role,
  createdAt: Time,
  expiresAt: Time,
  lastUsedAt: Schema.optional(Time),
  lastUsedIp: Schema.optional(Schema.String),
  allowedAddresses: Schema.optional(Schema.Array(Schema.String)),
  revokedAt: Schema.optional(Time)
}

/** A token of the API, without its secret. */
export const Token = Schema.Struct(token).annotations({ identifier: "Token" })

/** A token that was minted just now. */
export const MintedToken = Schema.Struct({
  ...token,
  token: Schema.String.annotations({ description: "For `Authorization: Bearer`. It is shown this once." })
}).annotations(created("MintedToken"))
