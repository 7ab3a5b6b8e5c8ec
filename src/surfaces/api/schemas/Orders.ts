import * as Schema from "effect/Schema"
import { Id, Identifier, Members, Problem, Time } from "./Common.ts"

/* Orders, their certificates, and their state at an upstream (docs/decisions/admin.md, "Conventions"). */

const AcmeStatus = Schema.Literal("pending", "ready", "processing", "valid", "invalid")

/** The status words of an order (RFC 8555 section 7.1.6). */
export const OrderStatus = AcmeStatus

const order = {
  id: Id,
  profile: Schema.String,
  accountId: Id,
  status: AcmeStatus,
  identifiers: Schema.Array(Identifier),
  createdAt: Time,
  expires: Time,
  url: Schema.String,
  notBefore: Schema.optional(Time),
  notAfter: Schema.optional(Time),
  error: Schema.optional(Problem),
  replaces: Schema.optional(Schema.String),
  certSerial: Schema.optional(Schema.String),
  certNotAfter: Schema.optional(Time),
  revokedAt: Schema.optional(Time),
  revocationReason: Schema.optional(Schema.Int),
  createdIp: Schema.optional(Schema.String),
  createdPtr: Schema.optional(Schema.String)
}

/** An order as lists show it. */
export const Order = Schema.Struct(order).annotations({ identifier: "Order" })

/** The status words of a job. */
export const JobStatus = Schema.Literal("ready", "running", "done", "failed", "cancelled")

const job = {
  id: Id,
  kind: Schema.String.annotations({ examples: ["signer_issue"] }),
  dedupKey: Schema.String,
  payload: Members,
  status: JobStatus,
  runAt: Time,
  attempts: Schema.Int,
  maxAttempts: Schema.Int,
  deadline: Schema.optional(Time),
  leaseUntil: Schema.optional(Time),
  leaseOwner: Schema.optional(Schema.String),
  lastError: Schema.optional(Schema.String),
  createdAt: Time,
  updatedAt: Time
}

/** A row of the queue. */
export const Job = Schema.Struct(job).annotations({ identifier: "Job" })

const upstreamOrder = {
  orderId: Id,
  profile: Schema.String,
  accountId: Id,
  identifiers: Schema.Array(Identifier),
  status: Schema.Literal("processing", "valid", "invalid"),
  localStatus: AcmeStatus,
  localExpires: Time,
  upstreamOrderUrl: Schema.optional(Schema.String),
  upstreamFinalizeUrl: Schema.optional(Schema.String),
  upstreamCertificateUrl: Schema.optional(Schema.String),
  error: Schema.optional(Schema.String),
  requestId: Schema.optional(Schema.String),
  clientIp: Schema.optional(Schema.String),
  clientPtr: Schema.optional(Schema.String),
  userAgent: Schema.optional(Schema.String),
  createdAt: Time,
  updatedAt: Time
}

/** A relayed order: its state at the upstream and its state here. */
export const UpstreamOrder = Schema.Struct(upstreamOrder).annotations({ identifier: "UpstreamOrder" })

/** The status words of a relayed order. */
export const UpstreamStatus = upstreamOrder.status

/** A relayed order with its job, while the queue has one. */
export const UpstreamOrderDetail = Schema.Struct({ ...upstreamOrder, job: Schema.optional(Job) }).annotations({
  identifier: "UpstreamOrderDetail"
})

/** A job with the order that it works on. */
export const JobDetail = Schema.Struct({
  ...job,
  orderId: Schema.optional(Id),
  upstreamOrder: Schema.optional(UpstreamOrder)
}).annotations({ identifier: "JobDetail" })

const Challenge = Schema.Struct({
  id: Id,
  type: Schema.Literal("http-01", "dns-01", "tls-alpn-01"),
  status: Schema.Literal("pending", "processing", "valid", "invalid"),
  validated: Schema.optional(Time),
  error: Schema.optional(Problem)
}).annotations({ identifier: "Challenge" })

const Authorization = Schema.Struct({
  id: Id,
  identifier: Identifier,
  status: Schema.Literal("pending", "valid", "invalid", "deactivated", "expired", "revoked"),
  expires: Time,
  wildcard: Schema.optional(Schema.Boolean),
  challenges: Schema.Array(Challenge)
}).annotations({ identifier: "Authorization" })

const Explanation = Schema.Struct({
  summary: Schema.String,
  nextStep: Schema.String,
  problemType: Schema.String,
  requestId: Schema.optional(Schema.String)
}).annotations({ identifier: "Explanation", description: "Why the order failed, and what to do, in words." })

/** An order with its authorizations, challenges and jobs. */
export const OrderDetail = Schema.Struct({
  ...order,
  certificatePem: Schema.optional(Schema.String),
  authorizations: Schema.Array(Authorization),
  jobs: Schema.Array(Job),
  replacedBy: Schema.optional(Id),
  explanation: Schema.optional(Explanation)
}).annotations({ identifier: "OrderDetail" })

/** A certificate that expires soon, and the one that replaced it. */
export const Expiring = Schema.Struct({
  orderId: Id,
  profile: Schema.String,
  accountId: Id,
  certSerial: Schema.optional(Schema.String),
  identifiers: Schema.Array(Schema.String),
  notAfter: Time,
  daysRemaining: Schema.Int,
  supersededBy: Schema.optional(Schema.Struct({
    orderId: Id,
    certSerial: Schema.optional(Schema.String),
    notAfter: Schema.optional(Time),
    via: Schema.Literal("replaces", "identifiers")
  }))
}).annotations({ identifier: "Expiring" })

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
  ski: Schema.optional(Schema.String),
  aki: Schema.optional(Schema.String),
  keyUsage: Schema.Array(Schema.String),
  extendedKeyUsage: Schema.Array(Schema.String),
  crlUrls: Schema.Array(Schema.String),
  caIssuersUrls: Schema.Array(Schema.String),
  isCa: Schema.Boolean
}).annotations({ identifier: "Certificate" })

/** The chain of an order, decoded, leaf first. */
export const Chain = Schema.Struct({
  certificates: Schema.Array(Certificate),
  certId: Schema.optional(Schema.String.annotations({ description: "The certID of the leaf (RFC 9773)." })),
  renewalWindow: Schema.optional(Schema.Struct({ start: Time, end: Time }))
}).annotations({ identifier: "Chain" })
