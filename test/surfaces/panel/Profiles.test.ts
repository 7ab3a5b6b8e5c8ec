import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as blocking from "../../../src/operations/operator/AccountBlocking.ts"
import { sqlite } from "../../support/Databases.ts"
import { callerAt, configOf, profileOf, sql } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, form, send, usePanel, wordsOf } from "../../support/Panel.ts"
import { policiesOf } from "../../support/Policies.ts"

/* The page of endpoints, the page of one endpoint, and the page that shows a policy. */

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

describe("the page of a profile", () => {
  const { config, test } = usePanel(sqlite, toml)
  const page = "/ui/profiles/default"

  test("has what a client pastes, the last day, the policy, and the table of another profile", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const row = "INSERT INTO audit_log (created_at, event, outcome, actor_kind, profile, detail) VALUES"
      yield* sql(`${row} (${startsAt}, 'certificate_issued', 'success', 'acme', 'default', '{}')`)
      yield* sql(`${row} (${startsAt}, 'certificate_issue_failed', 'failure', 'acme', 'default', '{}')`)
      yield* sql(`${row} (${startsAt}, 'certificate_issue_failed', 'failure', 'acme', 'other', '{}')`)
      const told = yield* panel.ask(page, held)
      const words = wordsOf(told)
      const directory = `${config.server.base_url}/profile/default/directory`
      for (
        const part of [
          "Issued 1 Refused 1 Revoked 0",
          `certbot certonly --server ${directory} --eab-kid KID`,
          "The rules are office, rest, warned; otherwise the answer is deny.",
          "[profiles.NAME]"
        ]
      ) assert.include(words, part)
      assert.notInclude(told.text, "Try an order", "a viewer runs no scripts")
      for (const name of ["off", "none"]) {
        assert.strictEqual((yield* panel.ask(`/ui/profiles/${name}`, held)).status, 404)
      }
    }))

  test("tries an order with the policy in force, and says if its account is blocked", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "otto", "operator")
      const ask = (fields: Readonly<Record<string, string>>) =>
        Effect.provide(send(panel, held, `${page}/explain`, fields), policiesOf(config))
      const refused = wordsOf(yield* ask({ clientIp: "203.0.113.9", identifiers: "a.example" }))
      assert.include(refused, "The policy of default: refused")
      assert.include(refused, "203.0.113.9")
      const { accountId } = yield* callerAt(profileOf(configOf()))
      assert.include(wordsOf(yield* ask({ accountId })), "the account is valid and not blocked")
      yield* blocking.block({ kind: "cli", id: "x" }, accountId, "it loops")
      const blocked = wordsOf(yield* ask({ accountId, identifiers: "a.example" }))
      assert.include(blocked, "account refused 403")
      assert.include(blocked, "an operator has blocked the account since")
      assert.include(blocked, "it loops")
      const { accountId: other } = yield* callerAt(profileOf(configOf(), "other"))
      for (
        const [fields, status, why] of [
          [{ clientIp: "x" }, 400, "clientIp takes an IP address"],
          [{ identifiers: "a b" }, 400, "identifiers takes"],
          [{ kind: "none" }, 400, "kind takes one of"],
          [{ accountId: "01890a5d-ac96-774b-bcce-b302099a8057" }, 404, "There is no account"],
          [{ accountId: other }, 400, "takes an account of the profile default"]
        ] as const
      ) {
        const told = yield* ask(fields)
        assert.strictEqual(told.status, status, why)
        assert.include(wordsOf(told), why)
      }
      const viewer = yield* entered(panel, "vic", "viewer")
      assert.strictEqual(
        (yield* panel.ask(`${page}/explain`, { method: "POST", ...viewer, body: form({}) })).status,
        403
      )
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
      assert.include(words, "What the policy says about one order is asked on the page of the profile .")
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
