import * as Schema from "effect/Schema"
import { operatorRoles } from "../../../domain/OperatorRole.ts"
import { created, Id, Int, Time } from "./Common.ts"

/* Operators, their sessions and tokens (docs/decisions/admin.md, "Operators", "Sessions" and "Tokens"). */

/** The roles of operators. */
export const Role = Schema.Literals(operatorRoles)

/** The status words of an operator. */
export const OperatorStatus = Schema.Literals(["active", "disabled"])

const operator = {
  id: Id,
  username: Schema.String,
  status: OperatorStatus,
  role: Role,
  totpEnabled: Schema.Boolean,
  contact: Schema.optionalKey(Schema.String),
  createdAt: Time,
  updatedAt: Time,
  lastLoginAt: Schema.optionalKey(Time),
  knownLoginIps: Schema.Array(Schema.String)
}

/** An operator as lists show them. */
export const Operator = Schema.Struct(operator).annotate({ identifier: "Operator" })

/** An operator with the state of their account. */
export const OperatorDetail = Schema.Struct({
  ...operator,
  enrolmentPending: Schema.Boolean,
  recoveryCodesRemaining: Int,
  activeSessions: Int
}).annotate({ identifier: "OperatorDetail" })

/** A session of an operator. */
export const SessionRow = Schema.Struct({
  id: Schema.String.annotate({ description: "The first 16 hexadecimal digits of the SHA-256 of its token." }),
  state: Schema.Literals(["pending_mfa", "active"]),
  createdAt: Time,
  expiresAt: Time,
  lastSeenAt: Time,
  createdIp: Schema.optionalKey(Schema.String),
  userAgent: Schema.optionalKey(Schema.String),
  current: Schema.optionalKey(Schema.Literal(true))
}).annotate({ identifier: "SessionRow" })

const csrf = {
  csrfToken: Schema.String.annotate({ description: "Send it in the header X-CSRF-Token with every change." }),
  expiresAt: Time
}

/** The step of the second factor that is missing. */
export const Step = Schema.Literals(["verify", "enrol"])

const SessionUser = Schema.Struct({
  id: Id,
  username: Schema.String,
  role: Role,
  totpEnabled: Schema.Boolean
}).annotate({ identifier: "SessionUser" })

/** A session that is fully signed in. */
export const Session = Schema.Struct({ user: SessionUser, ...csrf }).annotate({ identifier: "Session" })

/** A session that still needs its second factor. */
export const HalfSession = Schema.Struct({ mfaRequired: Schema.Literal(true), step: Step, ...csrf }).annotate({
  identifier: "HalfSession"
})

/** Codes that replace a lost second factor. Each works once. */
export const RecoveryCodes = Schema.Struct({ recoveryCodes: Schema.Array(Schema.String) }).annotate({
  identifier: "RecoveryCodes"
})

/** A session, with the recovery codes of the factor that was just enrolled. */
export const EnrolledSession = Schema.Struct({ ...Session.fields, ...RecoveryCodes.fields }).annotate({
  identifier: "EnrolledSession"
})

/** The secret of a second factor, for an authenticator. */
export const TotpSecret = Schema.Struct({
  secret: Schema.String.annotate({ description: "Base32. It is shown only now." }),
  uri: Schema.String,
  algorithm: Schema.String,
  digits: Int,
  period: Int
}).annotate(created("TotpSecret"))

/** The state of the caller's second factor. */
export const SecondFactor = Schema.Struct({
  totpEnabled: Schema.Boolean,
  enrolmentPending: Schema.Boolean,
  recoveryCodesRemaining: Int
}).annotate({ identifier: "SecondFactor" })

const token = {
  id: Id,
  name: Schema.String,
  user: Schema.String,
  role: Role,
  createdAt: Time,
  expiresAt: Time,
  lastUsedAt: Schema.optionalKey(Time),
  lastUsedIp: Schema.optionalKey(Schema.String),
  allowedAddresses: Schema.optionalKey(Schema.Array(Schema.String)),
  revokedAt: Schema.optionalKey(Time)
}

/** A token of the API, without its secret. */
export const Token = Schema.Struct(token).annotate({ identifier: "Token" })

/** A new token, with its secret. */
export const MintedToken = Schema.Struct({
  ...token,
  token: Schema.String.annotate({ description: "Send it as `Authorization: Bearer`. It is shown only now." })
}).annotate(created("MintedToken"))
