import { Effect } from "effect"
import { assert, describe } from "vitest"
import { sqlite } from "../../support/Databases.ts"
import { sql } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, usePanel, wordsOf } from "../../support/Panel.ts"

/* The page of endpoints, and the page that shows a policy. */

const toml = `[meta]
terms_of_service = "https://a.example/terms?a=1&b=2"
[eab]
enabled = true
[challenge]
bypass = true
[filter]
rules = ["office", "rest", "warned"]
[filter.check.net]
type = "allowed_ip"
allow = ["192.0.2.0/24", "198.51.100.0/24"]
[filter.check.host]
type = "reverse_dns"
allow = ["*.example.org"]
[filter.check.spare]
type = "path"
allow = ["/directory"]
[filter.rule.office]
when = "net and not host"
then = "allow"
[filter.rule.rest]
when = "host"
then = "deny"
message = "<i>ask</i>"
[filter.rule.warned]
when = "net"
then = "deny"
mode = "warn"
[profiles.off]
enabled = false
`

describe("the page of profiles", () => {
  const { test } = usePanel(sqlite, toml)

  test("shows each endpoint that is served", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const page = yield* panel.ask("/ui/profiles", held)
      const words = wordsOf(page)
      assert.include(words, "/profile/default/directory")
      assert.include(words, "Names are not validated.")
      assert.include(words, "External account binding required credentials")
      assert.include(words, "shared with other")
      assert.match(page.text, /id="default"/)
      assert.notMatch(page.text, /id="off"/)
      assert.include(words, "Not enabled: off ")
      assert.include(page.text, "terms?a=1&amp;b=2")
    }))
})

describe("the page of profiles without rules", () => {
  const { test } = usePanel(sqlite)

  test("says what is off, and that no request is filtered", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const words = wordsOf(yield* panel.ask("/ui/profiles", held))
      assert.notInclude(words, "Names are not validated.")
      assert.include(words, "External account binding off")
      assert.include(words, "Terms of service none")
      const policy = wordsOf(yield* panel.ask("/ui/profiles/default/filter", held))
      assert.include(policy, "Nothing is filtered.")
    }))
})

describe("the page of a policy", () => {
  const { test } = usePanel(sqlite, toml)
  const refused = (detail: object, at = startsAt, profile = "default") =>
    sql(
      `INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile, detail)
       VALUES (${at}, 'certificate_issue_failed', 'failure', 'acme', '${profile}', '${JSON.stringify(detail)}')`
    )

  test("links each rule to its checks and back", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const page = yield* panel.ask("/ui/profiles/default/filter", held)
      const words = wordsOf(page)
      assert.include(page.text, "<a href=\"#check-host\">")
      assert.include(page.text, "id=\"check-host\"")
      assert.include(page.text, "<a href=\"#rule-office\">")
      assert.include(words, "( net and (not host )) allow connection 0 ", "nothing was refused by it")
      assert.match(page.text, /<td class="roomy">\(<a href="#check-net">.*?<\/a> and \(not <a/)
      assert.include(words, "office ( net and")
      assert.include(words, "otherwise deny 0")
      assert.notInclude(words, "undefined")
      assert.include(words, "host reverse dns connection the DNS")
      assert.include(
        words,
        "net allowed ip connection, identifiers nothing outside allow 192.0.2.0/24, 198.51.100.0/24 office warned"
      )
      assert.include(words, "no rule in force names the check spare")
      assert.include(words, "only logged")
      assert.notInclude(page.text, "<i>ask")
      assert.include(words, "acme-svc filter explain")
    }))

  test("counts the refusals of each rule within a day", (panel) =>
    Effect.gen(function*() {
      yield* refused({ cause: "filter_denied", rule: "rest" })
      yield* refused({ cause: "filter_undecided", rule: "rest" }, startsAt - 86_399)
      yield* refused({ cause: "filter_denied", rule: "rest" }, startsAt - 86_401)
      yield* refused({ cause: "filter_denied", rule: "rest" }, startsAt, "other")
      yield* refused({ cause: "filter_denied" })
      yield* refused({ cause: "filter_denied", rule: "earlier" })
      yield* refused({ cause: "bad_csr" })
      const held = yield* entered(panel, "vic", "viewer")
      const page = yield* panel.ask("/ui/profiles/default/filter", held)
      const words = wordsOf(page)
      assert.match(words, /2 rest “ &lt;i&gt;ask&lt;\/i&gt; ” host deny connection 2 /)
      assert.include(words, "otherwise deny 1 ")
      assert.include(words, "earlier, which is no longer in force, refused 1 .")
      assert.lengthOf([...words.matchAll(/which is no longer in force/g)], 1)
      const link = /href="([^"]*certificate_issue_failed[^"]*)"/.exec(page.text)?.[1] ?? ""
      assert.include(link.replaceAll("&#x2f;", "/"), "/ui/audit?event=certificate_issue_failed")
      assert.include(link, "profile=default")
    }))

  test("is answered 404 for a profile that is not served", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const none = yield* panel.ask("/ui/profiles/nobody/filter", held)
      assert.strictEqual(none.status, 404)
      assert.include(wordsOf(none), "There is no profile nobody.")
      assert.strictEqual((yield* panel.ask("/ui/profiles/off/filter", held)).status, 404)
    }))
})
