import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as nonces from "../../../operations/operator/NonceRecords.ts"
import { act, noun } from "../Act.ts"
import { Acting, Configured } from "../Acting.ts"
import { optional, whole } from "../Field.ts"
import { Int, intOf } from "../schemas/Common.ts"

const longestTtl = 2_147_483_647

const readNonces = act({
  id: "readNonces",
  does: "Count the stored nonces",
  access: "viewer",
  input: {},
  output: Schema.Struct({
    count: intOf("How many nonces are stored."),
    ttlSeconds: intOf("How long a nonce can be used, in seconds.")
  }),
  errors: [],
  run: () => Effect.flatMap(Configured.config, nonces.count),
  http: { route: "GET /api/nonces" },
  cli: { command: "nonce count", example: "nonce count --json", needsConfig: () => true }
})

/** Deletes the nonces that are older than a given age. */
export const cleanNonces = act({
  id: "cleanNonces",
  does: "Delete expired nonces",
  access: "operator",
  input: {
    ttlSeconds: optional(
      whole("Delete nonces older than this many seconds. The default is nonce.ttl_seconds.", {
        help: "Delete nonces older than this many seconds. The default is nonce.ttl_seconds.",
        least: 0,
        most: longestTtl,
        of: "a number of seconds"
      })
    )
  },
  output: Schema.Struct({ removed: Int }),
  errors: [],
  run: ({ ttlSeconds }) =>
    Effect.gen(function*() {
      return yield* nonces.cleanup(yield* Configured.config, yield* Acting.operator, ttlSeconds)
    }),
  http: { route: "POST /api/nonces/cleanup" },
  cli: {
    command: "nonce cleanup",
    help: "Delete nonces that are too old to be used.",
    example: "nonce cleanup --yes",
    needsConfig: () => true,
    confirm: ({ ttlSeconds }) =>
      Effect.map(Configured.config, ({ nonce }) => {
        const age = ttlSeconds ?? nonce.ttl_seconds
        const harm = age < nonce.ttl_seconds ? ", which clients may still use" : ""
        return `Delete the nonces that are older than ${age} second(s)${harm}?`
      }),
    text: ({ removed }) => `Deleted ${removed} nonce(s).`
  }
})

/** The acts about replay nonces (RFC 8555 section 6.5). */
export const nonceActs = noun({
  name: "nonces",
  description: "Replay nonces.",
  commands: { nonce: "Nonces of the ACME protocol." },
  acts: [readNonces, cleanNonces]
})
