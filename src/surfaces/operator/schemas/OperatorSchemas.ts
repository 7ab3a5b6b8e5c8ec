import * as Schema from "effect/Schema"
import { operatorRoles } from "../../../domain/OperatorRole.ts"
import { created, Id, Int, Time } from "./Common.ts"

/*
 * The schemas of operators, their sessions and tokens (docs/contribute/decisions/admin.md, "Operators", "Sessions" and
 * "Tokens").
 */

/** The roles of operators. */
export const Role = Schema.Literals(operatorRoles)

/** A session of an operator. */
export const SessionRow = Schema.Struct({
  id: Schema.String.annotate({ description: "The first 16 hexadecimal digits of the SHA-256 of its token." }),
  username: Schema.optionalKey(
    Schema.String.annotate({
      description: "The name of its operator. Absent in the list of the caller's own sessions."
    })
  ),
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

/** A session, with the recovery codes of its newly enrolled factor. */
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
