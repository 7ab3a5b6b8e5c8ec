import { Effect } from "effect"
import { assert, describe } from "vitest"
import { freshPlace } from "../support/RunCommand.ts"
import { shellScript } from "../support/Script.ts"
import { useTests } from "../support/UseTests.ts"

/* `filter explain` reports every stage, whatever the result of the previous one. */

const { test } = useTests({ startsAt: 1_800_000_000 })

const place = () => {
  const late = shellScript(
    "test \"$ACME_FILTER_STAGE\" != CSR || { echo \"not at $ACME_FILTER_STAGE: $ACME_FILTER_IDENTIFIERS\"; exit 1; }"
  )
  return freshPlace(() =>
    `[profiles.default]
[filter]
rules = ["relying", "inside", "dry", "names"]
[filter.check.lists]
type = "path"
allow = ["/crl"]
[filter.check.office]
type = "allowed_ip"
allow = ["192.0.2.0/24"]
stages = ["connection"]
[filter.check.short]
type = "identifiers"
allow = ["*.example"]
[filter.check.other]
type = "identifiers"
allow = ["*.test"]
[filter.check.late]
type = "custom"
script_path = "${late}"
stages = ["identifiers"]
timeout_ms = 20000
[filter.rule.relying]
when = "lists"
then = "allow"
[filter.rule.inside]
when = "office"
then = "allow"
[filter.rule.dry]
when = "short"
then = "deny"
mode = "warn"
[filter.rule.names]
when = "short and late or other"
then = "allow"
`
  )
}

interface Told {
  readonly stages: ReadonlyArray<Readonly<Record<string, unknown>>>
}

describe("an explanation", () => {
  test("contains the request, the result of every stage, and the checks that were asked or skipped", () =>
    Effect.gen(function*() {
      const words = [
        "filter",
        "explain",
        "--client-ip",
        "203.0.113.9",
        "--identifier",
        "a.example",
        "--common-name",
        "A"
      ]
      const { run } = place()
      const { code, out } = yield* run([...words, "--json"])
      assert.strictEqual(code, 3)
      const skipped = (check: string, type: string, because: string) => ({ check, type, because })
      const atNames = "no rule of the stage identifiers names it"
      const warned = [{ rule: "dry", then: "deny" }]
      const short = { check: "short", type: "identifiers", verdict: "pass" }
      const others = [skipped("lists", "path", atNames), skipped("office", "allowed_ip", atNames)]
      const reason = "not at CSR: a.example,A"
      assert.deepStrictEqual(JSON.parse(out), {
        profile: "default",
        outcome: "refused",
        request: {
          clientIp: "203.0.113.9",
          method: "POST",
          path: "/newOrder",
          accountId: null,
          kind: "default",
          identifiers: ["a.example"],
          commonNames: ["A"]
        },
        stages: [
          {
            stage: "connection",
            at: "connection",
            outcome: "refused",
            status: 403,
            type: "unauthorized",
            detail: "the client address 203.0.113.9 is not among those allowed",
            warned: [],
            asked: [
              {
                check: "lists",
                type: "path",
                verdict: "fail",
                reason: "the path /newOrder is not among those allowed"
              },
              {
                check: "office",
                type: "allowed_ip",
                verdict: "fail",
                reason: "the client address 203.0.113.9 is not among those allowed"
              }
            ],
            skipped: [
              skipped("short", "identifiers", "no rule of the stage connection names it"),
              skipped("late", "custom", "no rule of the stage connection names it"),
              skipped("other", "identifiers", "no rule of the stage connection names it")
            ]
          },
          {
            stage: "identifiers",
            at: "newOrder",
            outcome: "allowed",
            rule: "names",
            warned,
            asked: [short, { check: "late", type: "custom", verdict: "pass" }],
            skipped: [...others, skipped("other", "identifiers", "rule names was settled without it")]
          },
          {
            stage: "identifiers",
            at: "CSR",
            outcome: "refused",
            status: 400,
            type: "badCSR",
            detail: "not allowed: a.example",
            warned,
            asked: [
              short,
              { check: "late", type: "custom", verdict: "fail", reason: `${reason} (the script ended with 1)` },
              { check: "other", type: "identifiers", verdict: "fail", reason: "not allowed: a.example" }
            ],
            skipped: others
          }
        ],
        ran: [{ check: "late", type: "custom", at: "newOrder" }, { check: "late", type: "custom", at: "CSR" }]
      })
      const shown = (yield* run(words)).out.split("\n")
      const lines = [
        "Request: POST /newOrder from 203.0.113.9; names a.example; kind default; common names A.",
        "connection: refused by filter.default, 403 unauthorized: the client address 203.0.113.9 is not among those allowed",
        "newOrder: allowed by rule names",
        "  other (identifiers): not asked, since rule names was settled without it",
        "  rule dry only warns, and would have refused",
        "CSR: refused by filter.default, 400 badCSR: not allowed: a.example",
        `  late (custom): fail, ${reason} (the script ended with 1)`,
        "These really ran: late (custom)."
      ]
      for (const line of lines) assert.include(shown, line)
    }))

  test("takes the kind of certificate of the order, and refuses one that the profile lacks", () =>
    Effect.gen(function*() {
      const { run } = freshPlace(() =>
        `[profiles.default]
[certificates]
default = "server"
[certificates.kinds]
default.description = "A"
server.description = "B"
mutual.description = "C"
[filter]
rules = ["few"]
[filter.check.plain]
type = "kinds"
deny = ["mutual"]
[filter.rule.few]
when = "plain"
then = "allow"
`
      )
      const words = ["filter", "explain", "--identifier", "a.example"]
      const usual = yield* run(words)
      assert.strictEqual(usual.code, 0)
      assert.include(usual.out, "names a.example; kind server.")
      const mutual = yield* run([...words, "--kind", "mutual"])
      assert.strictEqual(mutual.code, 3)
      assert.match(mutual.out, /^newOrder: refused by .*: the certificate profile mutual is denied$/m)
      const unknown = yield* run([...words, "--kind", "bogus"])
      assert.strictEqual(unknown.code, 3)
      assert.include(unknown.err, "--kind takes one of default, mutual, server, not")
    }))

  test("says why a stage or a check was not asked", () =>
    Effect.gen(function*() {
      const { run } = place()
      const { code, out } = yield* run(["filter", "explain", "--client-ip", "192.0.2.1", "--path", "/crl"])
      assert.strictEqual(code, 0)
      const lines = out.split("\n")
      assert.include(lines, "connection: allowed by rule relying")
      assert.include(lines, "  office (allowed_ip): not asked, since rule relying decided before")
      assert.include(lines, "newOrder: not asked, since there are no names")
      assert.include(lines, "CSR: not asked, since there are no names")
      const bare = freshPlace()
      const { out: json } = yield* bare.run(["filter", "explain", "--identifier", "a.example", "--json"])
      const { stages }: Told = JSON.parse(json)
      assert.deepStrictEqual(stages.map(({ at, because, outcome }) => [at, outcome, because]), [
        ["connection", "allowed", "nothing is filtered"],
        ["newOrder", "allowed", "nothing is filtered"],
        ["CSR", "allowed", "nothing is filtered"]
      ])
    }))
})
