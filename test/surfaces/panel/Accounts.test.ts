import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as accounts from "../../../src/operations/operator/AccountRecords.ts"
import * as eab from "../../../src/operations/operator/Eab.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, handmadeChain, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { entered, form, usePanel, wordsOf } from "../../support/Panel.ts"

/* The pages of accounts (docs/contribute/decisions/panel.md). */

const nobody = "01890a5d-ac96-774b-bcce-b302099a8057"
const fragment = { headers: { "hx-request": "true" } }

describe.each(databases)("the pages of accounts on $name", (backend) => {
  const { config, test } = usePanel(backend)
  const account = Effect.suspend(() => callerAt(profileOf(config)))

  test("show the URL for clients while there is no account", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/accounts", yield* entered({ ask }, "ann", "viewer"))
      assert.strictEqual(told.status, 200)
      assert.include(told.text, "No client has registered yet.")
      for (const name of ["default", "other"]) {
        assert.include(told.text.replaceAll("&#x2f;", "/"), `${config.server.base_url}/profile/${name}/directory`)
      }
      assert.notInclude(told.text, "CSV")
    }))

  test("keep the filters on the second page, in the exports and in the form", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (let made = 0; made < 51; made++) yield* account
      const other = yield* callerAt(profileOf(config, "other"))
      const told = yield* ask("/ui/accounts?profile=default&status=valid", held)
      const text = told.text.replaceAll("&#x2f;", "/").replaceAll("&amp;", "&")
      assert.notInclude(text, other.accountId)
      assert.include(text, "1–50 of 51")
      assert.include(text, "href=\"/ui/accounts?profile=default&status=valid&page=2\"")
      assert.include(text, "href=\"/ui/accounts/export?profile=default&status=valid&format=csv\"")
      assert.include(text, "<option selected>valid")
      const second = yield* ask("/ui/accounts?profile=default&status=valid&page=2", { ...held, ...fragment })
      assert.include(second.text, "51–51 of 51")
      assert.notInclude(second.text, "<html")
      assert.include(second.text, "id=\"list\"")
      const file = yield* ask("/ui/accounts/export?profile=other&format=csv", held)
      assert.match(file.headers["content-disposition"] ?? "", /^attachment; filename="acme-svc-accounts-.*\.csv"$/)
      assert.include(file.text, other.accountId)
      assert.strictEqual(file.text.trim().split("\r\n").length, 2)
    }))

  test("refuse an invalid filter with a message beside the filters", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const told = yield* ask("/ui/accounts?eabKid=nonsense", held)
      assert.strictEqual(told.status, 400)
      assert.include(told.text, "eabKid takes an id")
      assert.include(told.text, "value=\"nonsense\"")
      assert.strictEqual((yield* ask("/ui/accounts?profile=a%00b", held)).status, 400)
      assert.strictEqual((yield* ask("/ui/accounts/export?format=xml", held)).status, 400)
    }))

  test("show every detail of an account, but no controls to viewers", ({ ask }) =>
    Effect.gen(function*() {
      const { accountId } = yield* account
      const { credential } = yield* eab.create({ kind: "cli", id: "x" }, { label: "printers", profile: undefined })
      yield* sql(
        `UPDATE accounts SET eab_kid = (SELECT kid FROM eab_keys), created_ptr = 'client.example',
         last_seen_ip = '192.0.2.77', last_seen_ptr = 'seen.example'`
      )
      const viewer = yield* ask(`/ui/accounts/${accountId}`, yield* entered({ ask }, "vera", "viewer"))
      assert.strictEqual(viewer.status, 200)
      const { account: record } = yield* accounts.detail(accountId)
      assert.isAbove(record.pubkey.length, 0)
      for (const part of ["ecdsa-p256", "client.example", "192.0.2.77", "seen.example", credential.kid]) {
        assert.include(viewer.text, part)
      }
      assert.match(viewer.text, /<code class="long">[0-9a-f]{64}<\/code>/)
      assert.include(viewer.text.replaceAll("&#x2f;", "/"), `/ui/audit?accountId=${accountId}`)
      assert.notInclude(viewer.text.replace(/<header[\s\S]*?<\/header>/, ""), "hx-post")
      const operator = yield* ask(`/ui/accounts/${accountId}`, yield* entered({ ask }, "otto", "operator"))
      for (const act of ["contact", "deactivate", "delete"]) {
        assert.include(operator.text.replaceAll("&#x2f;", "/"), `hx-post="/ui/accounts/${accountId}/${act}"`)
      }
      assert.include(operator.text, "Deletes 1 account and 0 orders. None holds a live certificate.")
      assert.strictEqual((yield* ask(`/ui/accounts/${nobody}`, yield* entered({ ask }, "ann", "viewer"))).status, 404)
    }))

  test("write contacts from left to right, and in the list with at most 36 characters", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { accountId } = yield* account
      const contact = `\u05d3\u05d5\u05d0\u05e8@${"a-long-zone.".repeat(6)}example`
      yield* sql(`UPDATE accounts SET contact = '["mailto:${contact}"]'`)
      const shownOn = (path: string) =>
        Effect.map(ask(path, held), ({ text }) => /<bdi dir="ltr"[^>]*>([^<]*)<\/bdi>/.exec(text)?.[1])
      assert.strictEqual(yield* shownOn(`/ui/accounts/${accountId}`), contact)
      const listed = (yield* shownOn("/ui/accounts")) ?? ""
      assert.lengthOf(listed, 36)
      assert.match(listed, /^\u05d3.*…/)
    }))

  test("have separate pages for the orders of an account", ({ ask }) =>
    Effect.gen(function*() {
      const caller = yield* account
      for (let made = 0; made < 51; made++) yield* orderOf(caller, `host-${made}.example`)
      const held = yield* entered({ ask }, "ann", "viewer")
      const path = `/ui/accounts/${caller.accountId}`
      const told = yield* ask(path, held)
      assert.include(told.text.replaceAll("&#x2f;", "/"), `href="${path}/orders?page=2"`)
      const second = yield* ask(`${path}/orders?page=2`, { ...held, ...fragment })
      assert.include(second.text, "host-0.example")
      assert.notInclude(second.text, "host-1.example")
      assert.notInclude(second.text, "<html")
      assert.include((yield* ask(`${path}/orders?page=2`, held)).text, "Orders of account")
      assert.strictEqual((yield* ask(`/ui/accounts/${nobody}/orders`, held)).status, 404)
    }))

  test("change the contacts of an account", ({ ask }) =>
    Effect.gen(function*() {
      const { accountId } = yield* account
      const held = yield* entered({ ask }, "otto", "operator")
      const to = `/ui/accounts/${accountId}/contact`
      const send = (contact: string) => ask(to, { method: "POST", ...held, body: form({ contact }), ...fragment })
      const done = yield* send(" a@example.org \r\n\r\nmailto:b@example.org\n")
      assert.strictEqual(done.headers["hx-redirect"], `/ui/accounts/${accountId}?done=contact`)
      const { account: { contact } } = yield* accounts.detail(accountId)
      assert.deepStrictEqual(contact, ["mailto:a@example.org", "mailto:b@example.org"])
      const page = yield* ask(`/ui/accounts/${accountId}?done=contact`, held)
      assert.include(page.text, "The contacts were changed.")
      assert.include(page.text, "a@example.org\nb@example.org\n</textarea>")
      for (const bad of ["tel:+49", "not an address", "a@example.org, b@example.org"]) {
        const refused = wordsOf(yield* send(`fine@example.org\n${bad}`))
        assert.include(refused, "contact takes mail addresses")
        assert.include(refused, "the one at 2 is none.")
        assert.notInclude(refused, "example.org")
      }
      for (const bad of ["tel:+49", "not an address", "a\u0000@example.org"]) {
        const refused = yield* send(bad)
        assert.strictEqual(refused.status, 400, bad)
        assert.strictEqual(refused.headers["hx-retarget"], "find .refusal")
        assert.include(refused.text, "bad_request")
      }
      const many = Array.from({ length: 33 }, (_, index) => `a${index}@example.org`)
      assert.include(wordsOf(yield* send(many.join("\n"))), "contact takes at most 32 mail addresses")
      assert.strictEqual((yield* ask(to, { method: "POST", cookie: held.cookie, body: form({}) })).status, 403)
      const viewer = yield* entered({ ask }, "vera", "viewer")
      assert.strictEqual((yield* ask(to, { method: "POST", ...viewer, body: form({}) })).status, 403)
      yield* send("MAILTO:c@example.org")
      assert.deepStrictEqual((yield* accounts.detail(accountId)).account.contact, ["MAILTO:c@example.org"])
      yield* send("")
      assert.deepStrictEqual((yield* accounts.detail(accountId)).account.contact, [])
    }))

  test("deactivate an account permanently", ({ ask }) =>
    Effect.gen(function*() {
      const { accountId } = yield* account
      const held = yield* entered({ ask }, "otto", "operator")
      const path = `/ui/accounts/${accountId}`
      const done = yield* ask(`${path}/deactivate`, { method: "POST", ...held, ...fragment })
      assert.strictEqual(done.headers["hx-redirect"], `${path}?done=deactivated`)
      const page = yield* ask(`${path}?done=deactivated`, held)
      assert.include(page.text, "The account is deactivated.")
      assert.include(page.text, "its contacts are no longer used")
      assert.notInclude(page.text.replaceAll("&#x2f;", "/"), `hx-post="${path}/deactivate"`)
      const contact = yield* ask(`${path}/contact`, { method: "POST", ...held, body: form({ contact: "a@b.c" }) })
      assert.strictEqual(contact.status, 400)
      assert.strictEqual((yield* ask(`/ui/accounts/${nobody}/deactivate`, { method: "POST", ...held })).status, 404)
      const rows = yield* sql(
        "SELECT actor_kind, actor_id, client_ip, request_id FROM audit_log WHERE event = 'account_deactivated'"
      )
      const by = { actor_kind: "admin", actor_id: "otto", client_ip: "192.0.2.1", request_id: "request-1" }
      assert.deepStrictEqual(rows, [by], "who did it, from where, by which request")
    }))

  test("delete an account with all its orders, but not while a certificate can be used", ({ ask }) =>
    Effect.gen(function*() {
      const caller = yield* account
      yield* orderOf(caller, "a.example")
      const held = yield* entered({ ask }, "otto", "operator")
      const path = `/ui/accounts/${caller.accountId}`
      yield* sql(`UPDATE orders SET status = 'valid', certificate = '${handmadeChain}', cert_not_after = 4000000000`)
      const page = yield* ask(path, held)
      assert.include(page.text, "cannot be deleted while it holds 1 live certificate: revoke it first.")
      assert.notInclude(page.text.replaceAll("&#x2f;", "/"), `hx-post="${path}/delete"`)
      const refused = yield* ask(`${path}/delete`, { method: "POST", ...held, ...fragment })
      assert.strictEqual(refused.status, 409)
      assert.include(refused.text, "live_certificates")
      assert.strictEqual(refused.headers["hx-retarget"], "find .refusal")
      yield* sql("UPDATE orders SET revoked_at = 1")
      assert.include((yield* ask(path, held)).text, "Deletes 1 account and 1 order.")
      const done = yield* ask(`${path}/delete`, { method: "POST", ...held, ...fragment })
      assert.strictEqual(done.headers["hx-redirect"], "/ui/accounts?done=account-deleted")
      assert.include((yield* ask("/ui/accounts?done=account-deleted", held)).text, "The account was deleted")
      assert.strictEqual((yield* ask(path, held)).status, 404)
    }))

  test("escape the texts that clients sent", ({ ask }) =>
    Effect.gen(function*() {
      const { accountId } = yield* account
      yield* sql(
        `UPDATE accounts SET contact = ${backend.dialect === "sqlite" ? "?" : "$1"}, last_seen_ip = '192.0.2.1',
        last_seen_ptr = ${backend.dialect === "sqlite" ? "?" : "$2"}`,
        [JSON.stringify([`mailto:${hostile}`]), hostile]
      )
      const held = yield* entered({ ask }, "ann", "viewer")
      for (const path of ["/ui/accounts", `/ui/accounts/${accountId}`]) assertHarmless((yield* ask(path, held)).text)
    }))
})
