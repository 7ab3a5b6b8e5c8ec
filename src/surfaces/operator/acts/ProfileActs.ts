import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { NoSuch } from "../../../domain/OperatorError.ts"
import { signerBackends } from "../../../domain/SignerBackend.ts"
import { profilesShown } from "../../../operations/operator/ProfileRecords.ts"
import { viewOf } from "../../../services/policy/PolicyView.ts"
import { act, noun } from "../Act.ts"
import { Configured } from "../Acting.ts"
import { key } from "../Field.ts"
import { pageOf } from "../schemas/Common.ts"

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

/** The acts about endpoints and their policies. */
export const profileActs = noun({
  name: "profiles",
  description: "Endpoints and their policies.",
  commands: {},
  acts: [listProfiles, readPolicy]
})
