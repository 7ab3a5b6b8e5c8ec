import { Effect } from "effect"
import { assert, describe } from "vitest"
import { databases } from "../../support/Databases.ts"
import { callerAt, configOf, count, eventsOf, orderOf, profileOf } from "../../support/Graph.ts"
import { useRelays } from "../../support/Relayed.ts"

/* Tests that a name that a relay can never prove to its upstream is refused before any request. */

const relayingBy = (...lines: ReadonlyArray<string>) =>
  profileOf(configOf([
    "[challenge]",
    "enabled = [\"http-01\", \"dns-01\"]",
    "[signer]",
    "backend = \"relay\"",
    "[signer.relay]",
    "directory_url = \"https://ca.example/directory\"",
    ...lines
  ].join("\n")))

const dns01 = [
  "challenge_strategy = \"dns01\"",
  "dns01.rfc2136.server = \"192.0.2.53:53\"",
  "dns01.rfc2136.zone = \"a.example.\"",
  "dns01.rfc2136.tsig_key_name = \"key.\"",
  "dns01.rfc2136.tsig_key_secret = \"c2VjcmV0\""
]

const noWildcard =
  "The relay of this profile proves names by http01, which cannot prove a wildcard; that needs challenge_strategy dns01."
const notPublished = (name: string) =>
  `The authority behind this server is shown a name by the record _acme-challenge.${name}, which this server cannot publish.`

describe.each(databases)("newOrder at a relay on $name", (backend) => {
  const { asked, records, test } = useRelays(backend)

  for (
    const [strategy, lines, refused, taken] of [
      ["bypass", [], [], ["*.b.example", "b.example"]],
      ["http01", ["challenge_strategy = \"http01\""], [["*.a.example", noWildcard]], ["a.example", "b.example"]],
      [
        "dns01",
        dns01,
        [
          ["b.example", notPublished("b.example")],
          ["*.b.example", notPublished("b.example")],
          ["ba.example", notPublished("ba.example")]
        ],
        ["a.example", "*.a.example", "b.a.example"]
      ],
      ["dns01 with an alias", [...dns01, "dns01.challenge_alias = \"proofs.a.example\""], [], [
        "b.example",
        "*.c.example"
      ]]
    ] as const
  ) {
    test(`accepts only the names that ${strategy} can prove`, () =>
      Effect.gen(function*() {
        const caller = yield* callerAt(relayingBy(...lines))
        for (const [value, detail] of refused) {
          const error = yield* Effect.flip(orderOf(caller, value))
          assert.deepInclude(error, { _tag: "RejectedIdentifier", detail, identifier: { type: "dns", value } })
        }
        assert.strictEqual(yield* count("SELECT count(*) FROM orders"), 0)
        if (refused.length > 0) assert.include(eventsOf(records), "order_rejected")
        yield* orderOf(caller, ...taken)
        assert.deepStrictEqual(asked, [])
      }))
  }
})
