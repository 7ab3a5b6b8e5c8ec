import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { chainRows } from "../../../src/operations/work/AuditChaining.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { column, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, usePanel } from "../../support/Panel.ts"

/* The pages of the audit trail (docs/contribute/decisions/panel.md). */

const orderId = "01890a5d-ac96-774b-bcce-b302099a8057"
const fragment = { headers: { "hx-request": "true" } }
const plain = (html: string) => html.replaceAll("&#x2f;", "/").replaceAll("&amp;", "&").replaceAll("%3A", ":")

describe.each(databases)("the pages of the audit trail on $name", (backend) => {
  const { test } = usePanel(backend)

  const row = (more: Partial<Parameters<typeof audit.insert>[0]> = {}) =>
    audit.insert({
      event: "certificate_issue_failed",
      actorKind: "acme",
      actorId: "someone",
      profile: "default",
      accountId: orderId,
      orderId,
      certSerial: "0badcafe",
      identifiers: ["a.example", "b.example"],
      clientIp: "192.0.2.9",
      clientPtr: "client.example",
      userAgent: "certbot/4",
      requestId: "request/ 7",
      reason: "urn:ietf:params:acme:error:badCSR",
      detail: { cause: "bad_csr", error: "no key" },
      ...more
    })

  test("list rows by every filter", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (let made = 0; made < 51; made++) yield* row()
      const filters = `event=certificate_issue_failed&outcome=failure&actorKind=acme&profile=default&orderId=${orderId}`
      const told = yield* ask(`/ui/audit?${filters}`, held)
      assert.include(told.text, "1–50 of 51")
      assert.include(plain(told.text), `href="/ui/audit?event=certificate_issue_failed&outcome=failure`)
      assert.include(plain(told.text), `&orderId=${orderId}&page=2"`)
      assert.include(plain(told.text), `&orderId=${orderId}&since=2027-01-14T08:00:00Z">24 h</a>`)
      assert.include(plain(told.text), "since=2027-01-08T08:00:00Z\">7 d</a>")
      assert.include(plain(told.text), "since=2026-12-16T08:00:00Z\">30 d</a>")
      const second = yield* ask(`/ui/audit?${filters}&page=2`, { ...held, ...fragment })
      assert.include(second.text, "51–51 of 51")
      assert.notInclude(second.text, "<html")
      const file = yield* ask(`/ui/audit/export?${filters}&format=json`, held)
      assert.strictEqual(file.json.items.length, 51)
      for (const other of ["certSerial=0b:ad:ca:fe", "requestId=request%2F+7", `accountId=${orderId}`]) {
        assert.include((yield* ask(`/ui/audit?${other}`, held)).text, "of 51", other)
      }
      yield* TestClock.setTime((startsAt + 2 * 86_400) * 1000)
      const late = yield* entered({ ask }, "late", "viewer")
      assert.include(
        (yield* ask("/ui/audit?since=2027-01-16&event=certificate_issue_failed", late)).text,
        "No row matches."
      )
      assert.strictEqual((yield* ask("/ui/audit?until=2027-01-16&outcome=failure", late)).status, 200)
    }))

  test("refuse invalid filters", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (const bad of ["event=none", "outcome=maybe", "since=yesterday", "orderId=x", "requestId=%00"]) {
        assert.strictEqual((yield* ask(`/ui/audit?${bad}`, held)).status, 400, bad)
      }
    }))

  test("show every field of a row, with links to the records", ({ ask }) =>
    Effect.gen(function*() {
      yield* row()
      const held = yield* entered({ ask }, "ann", "viewer")
      const [id = ""] = yield* column("SELECT id FROM audit_log WHERE order_id IS NOT NULL")
      const told = plain((yield* ask(`/ui/audit/${id}`, held)).text)
      for (
        const part of [
          "certificate_issue_failed",
          "failure",
          "acme",
          "someone",
          "default",
          "0badcafe",
          "a.example",
          "b.example",
          "192.0.2.9",
          "client.example",
          "certbot/4",
          "badCSR",
          "bad_csr",
          "no key",
          `href="/ui/orders/${orderId}"`,
          `href="/ui/accounts/${orderId}"`,
          "/ui/audit?requestId=request%2F%207"
        ]
      ) assert.include(told, part)
      assert.include(told, "An order did not get a certificate; the detail has the cause.")
      assert.include(told, "<code>acme-svc order show ORDER_ID</code> prints the cause")
      assert.include(told, "The CSR does not fit the order, the kind of certificate or the policy.")
      yield* sql("INSERT INTO audit_log (created_at, event, outcome, actor_kind) VALUES (1, 'bare', 'success', 'cli')")
      const [bare = ""] = yield* column("SELECT max(id) FROM audit_log")
      const { text: bareText } = yield* ask(`/ui/audit/${bare}`, held)
      assert.include(bareText, "bare", "a row without a detail")
      assert.notInclude(bareText, "What this means")
      for (const none of ["999999", "x", "0x1"]) {
        assert.strictEqual((yield* ask(`/ui/audit/${none}`, held)).status, 404, none)
      }
    }))

  test("escape the texts that clients sent", ({ ask }) =>
    Effect.gen(function*() {
      yield* row({
        userAgent: hostile.slice(0, 200),
        requestId: hostile.slice(0, 100),
        clientPtr: hostile.slice(0, 253),
        detail: { cause: "bad_csr", error: hostile }
      })
      const held = yield* entered({ ask }, "ann", "viewer")
      const [id = ""] = yield* column("SELECT id FROM audit_log WHERE order_id IS NOT NULL")
      assertHarmless((yield* ask(`/ui/audit/${id}`, held)).text)
      const asked = encodeURIComponent(hostile.slice(0, 100))
      const list = yield* ask(`/ui/audit?requestId=${asked}`, held)
      assertHarmless(list.text)
      assert.include(list.text, "requestId holds U+202E, a character that nobody sees.")
      yield* row({ requestId: "<b>'" })
      const found = yield* ask("/ui/audit?requestId=%3Cb%3E%27", held)
      assert.include(found.text, "1–1 of 1")
      assert.notInclude(found.text, "<b>'")
    }))

  test("compare the rows with their chain, and list what differs", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const look = Effect.map(ask("/ui/audit/chain", held), ({ status, text }) => {
        assert.strictEqual(status, 200)
        return plain(text)
      })
      assert.include(yield* look, "Compared now")
      yield* row()
      yield* chainRows(1)
      yield* Effect.replicateEffect(row(), 3)
      yield* chainRows(1)
      const whole = yield* look
      assert.match(whole, /<dt>Verified rows<dd>3 <small>in 2 links<\/small>/)
      assert.match(whole, /<dt>Faults<dd>0<\/div>/)
      const [first] = yield* column("SELECT first_id FROM audit_chain WHERE sequence = 2")
      yield* sql(`DELETE FROM audit_log WHERE id = ${first}`)
      const faulty = yield* look
      assert.match(faulty, /<dt>Faults<dd>1<\/div>/)
      assert.include(faulty, "rows that were chained are gone")
      assert.match(plain((yield* ask("/ui/audit/chain?after=1", held)).text), /<dt>Verified rows<dd>2 /)
      for (const [query, status] of [["after=x", 400], ["after=99", 404], ["head=1", 400]] as const) {
        assert.strictEqual((yield* ask(`/ui/audit/chain?${query}`, held)).status, status, query)
      }
      assert.include(plain((yield* ask("/ui/audit", held)).text), "href=\"/ui/audit/chain\"")
    }))

  test("show how far each receiver is, with text that a receiver chose made harmless", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const look = Effect.map(ask("/ui/audit/chain", held), ({ text }) => plain(text))
      assert.notInclude(yield* look, "Receivers")
      yield* Effect.replicateEffect(row(), 3)
      yield* sql(
        `INSERT INTO audit_receivers (name, pushed_id, repeat_from, failures, failing_since, error)
         VALUES ('http', 1, 1, 2, 1, '<b>away</b>')`
      )
      const shown = yield* look
      assert.include(shown, "Receivers")
      assert.notInclude(shown, "<b>away")
      assert.include(shown, "&lt;b&gt;away")
    }))

  test("say that rows are kept without limit", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/audit", yield* entered({ ask }, "ann", "viewer"))
      assert.include(told.text, "Rows are kept for ever")
    }))
})

describe("the audit trail with a retention", () => {
  const { test } = usePanel(sqlite, "[audit]\nretention_days = 90\n")

  test("says how long rows are kept", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/audit", yield* entered({ ask }, "ann", "viewer"))
      assert.include(told.text, "Rows are kept for 90 days")
    }))
})
