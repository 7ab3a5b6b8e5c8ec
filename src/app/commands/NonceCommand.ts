import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as nonces from "../../operations/NonceRecords.ts"
import { renderDetail } from "../../surfaces/cli/Detail.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { withRecordsAndConfig } from "../Records.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, numberFlag, optional } from "./Flags.ts"
import { print } from "./Print.ts"

const countCommand = command(
  "count",
  "Count the stored nonces. Example: acme-svc nonce count --json. Exit codes: 0, 1, 3.",
  { json: jsonOption },
  ({ json }) =>
    withRecordsAndConfig(Effect.fnUntraced(function*({ config }) {
      const object = yield* nonces.count(config)
      yield* print(json, object, () => renderDetail(object))
    }))
)

const longestTtl = 2_147_483_647

const cleanupCommand = command(
  "cleanup",
  "Delete nonces that are too old to be used. Example: acme-svc nonce cleanup --yes. Exit codes: 0, 1, 2, 3.",
  {
    ttlSeconds: optional(
      numberFlag("ttl-seconds", { least: 0, most: longestTtl, of: "a number of seconds" }),
      "Delete nonces older than this many seconds. The default is nonce.ttl_seconds."
    ),
    json: jsonOption
  },
  ({ json, ttlSeconds }) =>
    withRecordsAndConfig(Effect.fnUntraced(function*({ config }) {
      const age = ttlSeconds ?? config.nonce.ttl_seconds
      const harm = age < config.nonce.ttl_seconds ? ", which clients may still use" : ""
      yield* Confirmation.ask(`Delete the nonces that are older than ${age} second(s)${harm}?`)
      const object = yield* nonces.cleanup(config, yield* Operator, age)
      yield* print(json, object, () => `Deleted ${object.removed} nonce(s).`)
    }))
)

/** `nonce`: the stored nonces. */
export const nonceCommand = Command.make("nonce").pipe(
  Command.withDescription("Nonces of the ACME protocol."),
  Command.withSubcommands([countCommand, cleanupCommand])
)
