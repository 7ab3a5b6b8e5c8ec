import * as Schema from "effect/Schema"
import { operatorRoles } from "../../../domain/OperatorRole.ts"
import { created, Id, Time } from "./Common.ts"

/* Operators, their sessions and tokens (docs/decisions/admin.md, "Operators", "Sessions" and "Tokens"). */

/** The roles of operators. */
export const Role = Schema.Literal(...operatorRoles)

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
  id: Schema.String.annotations({ description: "The first 16 hexadecimal digits of the SHA-256 of its token." }),
  state: Schema.Literal("pending_mfa", "active"),
  createdAt: Time,
  expiresAt: Time,
  lastSeenAt: Time,
  createdIp: Schema.optional(Schema.String),
  userAgent: Schema.optional(Schema.String),
  current: Schema.optional(Schema.Literal(true))
}).annotations({ identifier: "SessionRow" })

const csrf = {
  csrfToken: Schema.String.annotations({ description: "Send it in the header X-CSRF-Token with every change." }),
  expiresAt: Time
}

/** The step of the second factor that is missing. */
export const Step = Schema.Literal("verify", "enrol")

const SessionUser = Schema.Struct({
  id: Id,
  username: Schema.String,
  role: Role,
  totpEnabled: Schema.Boolean
}).annotations({ identifier: "SessionUser" })

/** A session that is fully signed in. */
export const Session = Schema.Struct({ user: SessionUser, ...csrf }).annotations({ identifier: "Session" })

/** A session that still needs its second factor. */
export const HalfSession = Schema.Struct({ mfaRequired: Schema.Literal(true), step: Step, ...csrf }).annotations({
  identifier: "HalfSession"
})

/** Codes that replace a lost second factor. Each works once. */
export const RecoveryCodes = Schema.Struct({ recoveryCodes: Schema.Array(Schema.String) }).annotations({
  identifier: "RecoveryCodes"
})

/** A session, with the recovery codes of the factor that was just enrolled. */
export const EnrolledSession = Schema.Struct({ ...Session.fields, ...RecoveryCodes.fields }).annotations({
  identifier: "EnrolledSession"
})

/** The secret of a second factor, for an authenticator. */
export const TotpSecret = Schema.Struct({
  secret: Schema.String.annotations({ description: "Base32. It is shown only now." }),
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

/** A new token, with its secret. */
export const MintedToken = Schema.Struct({
  ...token,
  token: Schema.String.annotations({ description: "Send it as `Authorization: Bearer`. It is shown only now." })
}).annotations(created("MintedToken"))
