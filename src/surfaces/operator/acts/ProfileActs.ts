import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { DnsName } from "../../../domain/Identifier.ts"
import { normalizeIdentifier } from "../../../domain/Identifier.ts"
import { NoSuch } from "../../../domain/OperatorError.ts"
import { signerBackends } from "../../../domain/SignerBackend.ts"
import { hiddenIn } from "../../../engine/HiddenText.ts"
import { comparable } from "../../../engine/net/Address.ts"
import { tryPolicy } from "../../../operations/operator/PolicyTrial.ts"
import { profilesShown } from "../../../operations/operator/ProfileRecords.ts"
import { viewOf } from "../../../services/policy/PolicyView.ts"
import { act, noun } from "../Act.ts"
import { Configured } from "../Acting.ts"
import type { Field } from "../Field.ts"
import { id, key, line, optional, textOf, textsOf } from "../Field.ts"
import { Int, pageOf } from "../schemas/Common.ts"

/*
 * Declares the acts about the served endpoints and their policies. Unlike these acts, the commands `profile list` and
 * `filter show` read the configuration on the disk, and need no database.
 */

const Profile = Schema.Struct({
  name: Schema.String,
  directory: Schema.String,
  backend: Schema.Literals(signerBackends),
  challenges: Schema.Array(Schema.String),
  challengeBypass: Schema.Boolean,
  eabEnabled: Schema.Boolean,
  filterActive: Schema.Boolean,
  termsOfService: Schema.optionalKey(Schema.String),
  degraded: Schema.optionalKey(Schema.Struct({ reason: Schema.String, since: Schema.String })).annotateKey({
    description: "Why no certificate can be issued now, and since when. Absent if certificates can be issued."
  }),
  signerShared: Schema.Array(Schema.String).annotate({ description: "Other profiles that use the same signer." })
}).annotate({ identifier: "Profile" })

const Stages = Schema.Array(Schema.Literals(["connection", "identifiers"]))

const Policy = Schema.Struct({
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

/** Lists the served endpoints. */
export const listProfiles = act({
  id: "listProfiles",
  does: "Mounted endpoints",
  access: "viewer",
  input: {},
  output: pageOf(Profile),
  errors: [],
  run: () =>
    Effect.map(
      Effect.flatMap(Configured.config, profilesShown),
      (items) => ({ items, total: items.length, limit: items.length, offset: 0 })
    ),
  http: { route: "GET /api/profiles" }
})

const readPolicy = act({
  id: "readPolicy",
  does: "Show the policy of an endpoint",
  access: "viewer",
  input: { name: key("The name of the profile.") },
  output: Policy,
  errors: [],
  run: ({ name }) =>
    Effect.gen(function*() {
      const { profiles } = yield* Configured.config
      const profile = profiles.find((one) => one.enabled && one.name === name)
      return profile === undefined ? yield* new NoSuch({ noun: "profile", id: name }) : viewOf(profile)
    }),
  http: { route: "GET /api/profiles/{name}/filter" }
})

const Stage = Schema.Struct({
  stage: Schema.String,
  at: Schema.String.annotate({ description: "connection, account, scope, newOrder, or CSR for finalize." }),
  outcome: Schema.Literals(["allowed", "refused", "undecided", "unasked"]),
  because: Schema.optionalKey(Schema.String),
  status: Schema.optionalKey(Int),
  type: Schema.optionalKey(Schema.String),
  rule: Schema.optionalKey(Schema.String),
  detail: Schema.optionalKey(Schema.String),
  warned: Schema.Array(Schema.Struct({ rule: Schema.String, then: Schema.Literals(["allow", "deny"]) })),
  asked: Schema.Array(Schema.Struct({
    check: Schema.String,
    type: Schema.String,
    verdict: Schema.String,
    reason: Schema.optionalKey(Schema.String),
    error: Schema.optionalKey(Schema.String)
  })),
  skipped: Schema.Array(Schema.Struct({ check: Schema.String, type: Schema.String, because: Schema.String }))
})

const Explanation = Schema.Struct({
  profile: Schema.String,
  outcome: Schema.Literals(["allowed", "refused", "undecided"]),
  request: Schema.Struct({
    clientIp: Schema.NullOr(Schema.String),
    method: Schema.String,
    path: Schema.String,
    accountId: Schema.NullOr(Schema.String),
    kind: Schema.String,
    identifiers: Schema.Array(Schema.String),
    commonNames: Schema.Array(Schema.String)
  }),
  stages: Schema.Array(Stage),
  ran: Schema.Array(Schema.Struct({ check: Schema.String, type: Schema.String, at: Schema.String }))
}).annotate({ identifier: "Explanation" })

const mostNames = 100

/** The names of an order, in normalised form. */
const names: Field<ReadonlyArray<DnsName>> = textsOf(
  "The names of the order. Without names, only the connection is tried.",
  {
    shown: "name",
    most: mostNames,
    takes: `at most ${mostNames} names that an order may have`,
    read: (text) => Result.getOrUndefined(normalizeIdentifier(text, { dns01Enabled: true }))
  }
) as Field<ReadonlyArray<DnsName>>

/** Tests the policy of a served endpoint with a hypothetical order. */
export const explainPolicy = act({
  id: "explainPolicy",
  does: "Test the policy of an endpoint with a hypothetical order; scripts and look-ups really run",
  access: "operator",
  input: {
    name: key("The name of the profile."),
    clientIp: optional(textOf({
      description: "The address of the client. Without it, the address is unknown.",
      shown: "address",
      takes: "an IP address",
      read: (text) => comparable(text.trim())?.text
    })),
    identifiers: { ...names, isNeeded: false, absent: [] },
    commonNames: {
      ...textsOf("Common names of the CSR, for finalize.", {
        shown: "text",
        most: mostNames,
        takes: `at most ${mostNames} texts without commas`,
        read: (text) => text === "" || text.includes(",") || hiddenIn(text) !== undefined ? undefined : text
      }),
      isNeeded: false,
      absent: []
    },
    accountId: optional(
      id("The account that sends the request; it may be blocked, and its credential may restrict it.")
    ),
    kind: optional(line("The kind of certificate of the order.", { longest: 100 }))
  },
  output: Explanation,
  errors: ["not_found"],
  run: ({ clientIp, identifiers, name, ...asked }) =>
    Effect.gen(function*() {
      const { profiles } = yield* Configured.config
      const profile = profiles.find((one) => one.enabled && one.name === name) ??
        (yield* new NoSuch({ noun: "profile", id: name }))
      return yield* tryPolicy(profile, { ...asked, client: comparable(clientIp ?? ""), names: identifiers })
    }),
  http: { route: "POST /api/profiles/{name}/explain" }
})

/** The acts about endpoints and their policies. */
export const profileActs = noun({
  name: "profiles",
  description: "Endpoints and their policies.",
  commands: {},
  acts: [listProfiles, readPolicy, explainPolicy]
})
