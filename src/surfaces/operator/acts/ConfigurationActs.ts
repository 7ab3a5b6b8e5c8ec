import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { NoSuch } from "../../../domain/OperatorError.ts"
import { configKeyObject } from "../../../operations/operator/objects/SettingObjects.ts"
import { effectiveKeys } from "../../../settings/Effective.ts"
import { act, noun } from "../Act.ts"
import { Configured } from "../Acting.ts"
import { ofProfile } from "../Field.ts"
import { pageOf } from "../schemas/Common.ts"

/*
 * Declares the acts about the configuration in force. Unlike these acts, the command `config show` reads the
 * configuration on the disk, and needs no database.
 */

const Setting = Schema.Struct({
  key: Schema.String,
  value: Schema.optionalKey(
    Schema.Union([Schema.String, Schema.Finite, Schema.Boolean, Schema.Array(Schema.String)])
  ),
  source: Schema.Literals(["default", "file", "env"]),
  secret: Schema.optionalKey(Schema.Boolean)
}).annotate({ identifier: "Setting" })

/** Shows the keys in force, of the service or of one profile. */
export const readConfig = act({
  id: "readConfig",
  does: "Show the configuration in force; secrets are masked",
  access: "viewer",
  input: ofProfile,
  output: pageOf(Setting),
  errors: [],
  run: ({ profile }) =>
    Effect.gen(function*() {
      const keys = effectiveKeys((yield* Configured).resolved, profile)
      if (keys === undefined) return yield* new NoSuch({ noun: "profile", id: profile ?? "" })
      return { items: keys.map(configKeyObject), total: keys.length, limit: keys.length, offset: 0 }
    }),
  http: { route: "GET /api/config" }
})

/** The acts about the configuration. */
export const configurationActs = noun({
  name: "configuration",
  description: "The configuration in force.",
  commands: {},
  acts: [readConfig]
})
