import * as Schema from "effect/Schema"
import { Members, Time } from "./Common.ts"

/* The audit trail, the queue, the CAs and the configuration of the service. */

/** Whether the action of a row of the trail was done or refused. */
export const Outcome = Schema.Literal("success", "failure")

/** Who acted. */
export const ActorKind = Schema.Literal("acme", "admin", "cli", "system")

/** A row of the audit trail (docs/decisions/audit-rows.md). */
export const AuditRow = Schema.Struct({
  id: Schema.Int,
  createdAt: Time,
  event: Schema.String.annotations({ examples: ["certificate_issued"] }),
  outcome: Outcome,
  actorKind: ActorKind,
  actorId: Schema.optional(Schema.String),
  profile: Schema.optional(Schema.String),
  accountId: Schema.optional(Schema.String),
  orderId: Schema.optional(Schema.String),
  certSerial: Schema.optional(Schema.String),
  identifiers: Schema.Array(Schema.String),
  clientIp: Schema.optional(Schema.String),
  clientPtr: Schema.optional(Schema.String),
  userAgent: Schema.optional(Schema.String),
  requestId: Schema.optional(Schema.String),
  reason: Schema.optional(Schema.String),
  detail: Schema.optional(Members)
}).annotations({ identifier: "AuditRow" })

/** A mounted endpoint. */
export const Profile = Schema.Struct({
  name: Schema.String,
  directory: Schema.String,
  backend: Schema.Literal("local_ca", "relay", "custom"),
  challenges: Schema.Array(Schema.String),
  challengeBypass: Schema.Boolean,
  eabEnabled: Schema.Boolean,
  filterActive: Schema.Boolean,
  termsOfService: Schema.optional(Schema.String),
  signerShared: Schema.Array(Schema.String).annotations({ description: "Other profiles that use the same signer." })
}).annotations({ identifier: "Profile" })

const Stages = Schema.Array(Schema.Literal("connection", "identifiers"))

/** The policy of a profile as it is in force. */
export const Policy = Schema.Struct({
  profile: Schema.String,
  active: Schema.Boolean,
  default: Schema.optional(Schema.Literal("allow", "deny")),
  checks: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String, stages: Stages })),
  rules: Schema.Array(Schema.Struct({
    name: Schema.String,
    when: Schema.String.annotations({ description: "The condition, fully parenthesised." }),
    then: Schema.Literal("allow", "deny"),
    mode: Schema.Literal("enforce", "warn"),
    stages: Stages
  })),
  warnings: Schema.Array(Schema.String)
}).annotations({ identifier: "Policy" })

/** How many nonces are stored. */
export const Nonces = Schema.Struct({ count: Schema.Int, ttlSeconds: Schema.Int })

/** The queue by kind. */
export const Queue = Schema.Struct({
  kinds: Schema.Array(Schema.Struct({
    kind: Schema.String,
    ready: Schema.Int,
    running: Schema.Int,
    failed: Schema.Int,
    oldestReadySeconds: Schema.Int.annotations({
      description: "The age of the oldest job that is due; 0 if none is due."
    })
  })),
  ready: Schema.Int,
  running: Schema.Int,
  failed: Schema.Int
}).annotations({ identifier: "Queue" })

/** A process of the service. */
export const Worker = Schema.Struct({
  owner: Schema.String,
  roles: Schema.Array(Schema.String),
  version: Schema.String,
  startedAt: Time,
  lastSeenAt: Time,
  stale: Schema.Boolean.annotations({ description: "It was not seen for 30 seconds." })
}).annotations({ identifier: "Worker" })

/** A CA of this service and its revocation list. */
export const Ca = Schema.Struct({
  issuer: Schema.String.annotations({ description: "The SHA-256 of its SubjectPublicKeyInfo, in hexadecimal." }),
  subject: Schema.optional(Schema.String),
  sha256: Schema.optional(Schema.String),
  keyType: Schema.optional(Schema.String),
  notBefore: Schema.optional(Time),
  notAfter: Schema.optional(Time),
  profiles: Schema.Array(Schema.String),
  crlNumber: Schema.optional(Schema.Int),
  thisUpdate: Schema.optional(Time),
  nextUpdate: Schema.optional(Time),
  entries: Schema.Int,
  unlisted: Schema.Int.annotations({ description: "How many revocations the stored list does not contain yet." }),
  state: Schema.Literal("ok", "due", "expired", "missing")
}).annotations({ identifier: "Ca" })

/** A key of the configuration and its value in force. */
export const Setting = Schema.Struct({
  key: Schema.String,
  value: Schema.optional(
    Schema.Union(Schema.String, Schema.Number, Schema.Boolean, Schema.Array(Schema.String))
  ),
  source: Schema.Literal("default", "file", "env"),
  secret: Schema.optional(Schema.Boolean)
}).annotations({ identifier: "Setting" })

/** The period that trends cover. */
export const Range = Schema.Literal("24h", "7d", "30d")

/** Counts of issuances, refusals and revocations over time. */
export const Trends = Schema.Struct({
  buckets: Schema.Array(Schema.Struct({
    start: Time,
    issued: Schema.Int,
    refused: Schema.Int,
    revoked: Schema.Int
  })),
  bucketSeconds: Schema.Int
}).annotations({ identifier: "Trends" })

/** The records that a text of the search box has found. */
export const Found = Schema.Struct({
  query: Schema.String,
  results: Schema.Array(Schema.Struct({
    kind: Schema.String,
    id: Schema.String,
    profile: Schema.optional(Schema.String),
    label: Schema.String,
    url: Schema.String
  })),
  truncated: Schema.optional(Schema.Boolean),
  hint: Schema.optional(Schema.String)
}).annotations({ identifier: "Found" })
