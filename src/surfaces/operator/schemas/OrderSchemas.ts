import * as Schema from "effect/Schema"
import { certificateStates } from "../../../domain/CertificateState.ts"
import { challengeTypeNames } from "../../../domain/Challenge.ts"
import { Id, Identifier, Int, Members, Problem, Time } from "./Common.ts"

/*
 * The schemas of orders, their certificates, and their state at an upstream (docs/contribute/decisions/admin.md,
 * "Conventions").
 */

/** The status words of an order (RFC 8555 section 7.1.6). */
const AcmeStatus = Schema.Literals(["pending", "ready", "processing", "valid", "invalid"])

/** The name of a kind of certificate. */
export const KindName = Schema.String.annotate({
  description: "The name of the kind of certificate.",
  examples: ["default"]
})

const order = {
  id: Id,
  profile: Schema.String,
  accountId: Id,
  status: AcmeStatus,
  identifiers: Schema.Array(Identifier),
  kind: KindName,
  createdAt: Time,
  expires: Time,
  url: Schema.String,
  notBefore: Schema.optionalKey(Time),
  notAfter: Schema.optionalKey(Time),
  error: Schema.optionalKey(Problem),
  replaces: Schema.optionalKey(Schema.String),
  certSerial: Schema.optionalKey(Schema.String),
  certNotAfter: Schema.optionalKey(Time),
  revokedAt: Schema.optionalKey(Time),
  revocationReason: Schema.optionalKey(Int),
  createdIp: Schema.optionalKey(Schema.String),
  createdPtr: Schema.optionalKey(Schema.String)
}

/** An order as lists show it. */
export const Order = Schema.Struct(order).annotate({ identifier: "Order" })

/** A certificate that was issued, as the list of certificates shows it. */
export const IssuedCertificate = Schema.Struct({
  orderId: Id,
  identifiers: Schema.Array(Schema.String),
  kind: KindName,
  state: Schema.Literals(certificateStates),
  notAfter: Schema.optionalKey(Time.annotate({ description: "When the certificate ends." })),
  profile: Schema.String,
  accountId: Id,
  accountLabel: Schema.optionalKey(
    Schema.String.annotate({ description: "The first contact of the account, or the label of its credential." })
  ),
  certSerial: Schema.optionalKey(Schema.String),
  orderedAt: Time,
  revokedAt: Schema.optionalKey(Time),
  revocationReason: Schema.optionalKey(Int),
  replacedBy: Schema.optionalKey(
    Schema.String.annotate({
      description: "The order of the certificate that replaces it. Only certificates that end soon have this member."
    })
  )
}).annotate({ identifier: "IssuedCertificate" })

/** An order whose certificate has just been revoked, and the job that publishes the revocation. */
export const RevokedOrder = Schema.Struct({ ...order, job: Id }).annotate({
  identifier: "RevokedOrder"
})

/** The status words of a job. */
export const JobStatus = Schema.Literals(["ready", "running", "done", "failed", "cancelled"])

const job = {
  id: Id,
  kind: Schema.String.annotate({ examples: ["signer_issue"] }),
  dedupKey: Schema.String,
  payload: Members,
  status: JobStatus,
  runAt: Time,
  attempts: Int,
  maxAttempts: Int,
  deadline: Schema.optionalKey(Time),
  leaseUntil: Schema.optionalKey(Time),
  leaseOwner: Schema.optionalKey(Schema.String),
  lastError: Schema.optionalKey(Schema.String),
  createdAt: Time,
  updatedAt: Time
}

/** A row of the queue. */
export const Job = Schema.Struct(job).annotate({ identifier: "Job" })

const upstreamOrder = {
  orderId: Id,
  profile: Schema.String,
  accountId: Id,
  identifiers: Schema.Array(Identifier),
  status: Schema.Literals(["processing", "valid", "invalid"]),
  localStatus: AcmeStatus,
  localExpires: Time,
  upstreamOrderUrl: Schema.optionalKey(Schema.String),
  upstreamFinalizeUrl: Schema.optionalKey(Schema.String),
  upstreamCertificateUrl: Schema.optionalKey(Schema.String),
  error: Schema.optionalKey(Schema.String),
  requestId: Schema.optionalKey(Schema.String),
  clientIp: Schema.optionalKey(Schema.String),
  clientPtr: Schema.optionalKey(Schema.String),
  userAgent: Schema.optionalKey(Schema.String),
  createdAt: Time,
  updatedAt: Time
}

/** A relayed order: its state at the upstream and its state here. */
export const UpstreamOrder = Schema.Struct(upstreamOrder).annotate({ identifier: "UpstreamOrder" })

/** A job with the order that it works on. */
export const JobDetail = Schema.Struct({
  ...job,
  orderId: Schema.optionalKey(Id),
  upstreamOrder: Schema.optionalKey(UpstreamOrder)
}).annotate({ identifier: "JobDetail" })

const Cause = Schema.Struct({ reason: Schema.String, detail: Schema.String }).annotate({
  identifier: "ValidationCause",
  description:
    "Why the validation failed: a word for the reason, and what was queried or connected to. Clients never see this."
})

const Challenge = Schema.Struct({
  id: Id,
  type: Schema.Literals(challengeTypeNames),
  status: Schema.Literals(["pending", "processing", "valid", "invalid"]),
  validated: Schema.optionalKey(Time),
  error: Schema.optionalKey(Problem),
  cause: Schema.optionalKey(Cause)
}).annotate({ identifier: "Challenge" })

const Authorization = Schema.Struct({
  id: Id,
  identifier: Identifier,
  status: Schema.Literals(["pending", "valid", "invalid", "deactivated", "expired", "revoked"]),
  expires: Time,
  wildcard: Schema.optionalKey(Schema.Boolean),
  provedBy: Schema.optionalKey(
    Schema.Literal("credential").annotate({
      description: "What made the authorization valid, if no challenge did: the credential of the account."
    })
  ),
  challenges: Schema.Array(Challenge)
}).annotate({ identifier: "Authorization" })

const Explanation = Schema.Struct({
  summary: Schema.String,
  nextStep: Schema.String,
  problemType: Schema.String,
  requestId: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Explanation", description: "Why the order failed, and what to do, in words." })

/** An order with its authorizations, challenges and jobs. */
export const OrderDetail = Schema.Struct({
  ...order,
  certificatePem: Schema.optionalKey(Schema.String),
  authorizations: Schema.Array(Authorization),
  jobs: Schema.Array(Job),
  replacedBy: Schema.optionalKey(Id),
  notGranted: Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description: "Extensions that the CSR asked for and the certificate lacks, by name or OID."
    })
  ),
  explanation: Schema.optionalKey(Explanation)
}).annotate({ identifier: "OrderDetail" })

const Certificate = Schema.Struct({
  subject: Schema.String,
  issuer: Schema.String,
  serial: Schema.String,
  notBefore: Time,
  notAfter: Time,
  keyType: Schema.String,
  signatureAlgorithm: Schema.String,
  sans: Schema.Array(Schema.String),
  sha256: Schema.String,
  ski: Schema.optionalKey(Schema.String),
  aki: Schema.optionalKey(Schema.String),
  keyUsage: Schema.Array(Schema.String),
  extendedKeyUsage: Schema.Array(Schema.String),
  crlUrls: Schema.Array(Schema.String),
  caIssuersUrls: Schema.Array(Schema.String),
  isCa: Schema.Boolean
}).annotate({ identifier: "Certificate" })

/** The chain of an order, decoded, leaf first. */
export const Chain = Schema.Struct({
  certificates: Schema.Array(Certificate),
  certId: Schema.optionalKey(Schema.String.annotate({ description: "The certID of the leaf (RFC 9773)." })),
  renewalWindow: Schema.optionalKey(Schema.Struct({ start: Time, end: Time }))
}).annotate({ identifier: "Chain" })
