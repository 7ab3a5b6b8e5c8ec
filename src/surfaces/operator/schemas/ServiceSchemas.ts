import * as Schema from "effect/Schema"
import { Int, Time } from "./Common.ts"

/* The configuration of the service. */

/** A mounted endpoint. */
export const Profile = Schema.Struct({
  name: Schema.String,
  directory: Schema.String,
  backend: Schema.Literals(["local_ca", "relay", "custom"]),
  challenges: Schema.Array(Schema.String),
  challengeBypass: Schema.Boolean,
  eabEnabled: Schema.Boolean,
  filterActive: Schema.Boolean,
  termsOfService: Schema.optionalKey(Schema.String),
  degraded: Schema.optionalKey(Schema.Struct({ reason: Schema.String, since: Schema.String })).annotateKey({
    description: "Why no certificate can be issued now, and since when. Absent where it can."
  }),
  signerShared: Schema.Array(Schema.String).annotate({ description: "Other profiles that use the same signer." })
}).annotate({ identifier: "Profile" })

const Stages = Schema.Array(Schema.Literals(["connection", "identifiers"]))

/** The policy of a profile as it is in force. */
export const Policy = Schema.Struct({
  profile: Schema.String,
  active: Schema.Boolean,
  default: Schema.optionalKey(Schema.Literals(["allow", "deny"])),
  checks: Schema.Array(Schema.Struct({ name: Schema.String, type: Schema.String, stages: Stages })),
  rules: Schema.Array(Schema.Struct({
    name: Schema.String,
    when: Schema.String.annotate({ description: "The condition, fully parenthesised." }),
    then: Schema.Literals(["allow", "deny"]),
    mode: Schema.Literals(["enforce", "warn"]),
    stages: Stages
  })),
  warnings: Schema.Array(Schema.String)
}).annotate({ identifier: "Policy" })

/** A key of the configuration and its value in force. */
export const Setting = Schema.Struct({
  key: Schema.String,
  value: Schema.optionalKey(
    Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Array(Schema.String)])
  ),
  source: Schema.Literals(["default", "file", "env"]),
  secret: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "Setting" })

/** The period that trends cover. */
export const Range = Schema.Literals(["24h", "7d", "30d"])

/** Counts of issuances, refusals and revocations over time. */
export const Trends = Schema.Struct({
  buckets: Schema.Array(Schema.Struct({
    start: Time,
    issued: Int,
    refused: Int,
    revoked: Int
  })),
  bucketSeconds: Int
}).annotate({ identifier: "Trends" })

/** The records that a text of the search box has found. */
export const Found = Schema.Struct({
  query: Schema.String,
  results: Schema.Array(Schema.Struct({
    kind: Schema.String,
    id: Schema.String,
    profile: Schema.optionalKey(Schema.String),
    label: Schema.String,
    url: Schema.String
  })),
  truncated: Schema.optionalKey(Schema.Boolean),
  hint: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Found" })
