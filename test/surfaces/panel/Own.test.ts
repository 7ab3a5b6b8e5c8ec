import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as operators from "../../../src/operations/operator/identity/Operators.ts"
import * as tokens from "../../../src/operations/operator/identity/Tokens.ts"
import type { Held } from "../../support/Asked.ts"
import { secretOf } from "../../support/Authenticator.ts"
import { databases, sqlite } from "../../support/Databases.ts"
import { sql } from "../../support/Graph.ts"
import { codeOf, config, enter, made, password } from "../../support/Operators.ts"
import type { AskingPanel } from "../../support/Panel.ts"
import { entered, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"

/* The pages about one's own account. */

const page = "/ui/account"
const right = { password }
const wrong = { password: "not the password" }
const shownOf = (username: string) => operators.show(config.admin, username)

/** Sets up an authenticator in the browser; returns its key and the recovery codes. */
const enrol = Effect.fnUntraced(
  function*(panel: AskingPanel, held: Held, fields: Readonly<Record<string, string>> = right) {
    const begun = yield* send(panel, held, `${page}/factor/begin`, fields)
    const [, key = ""] = /data-copy="([A-Z2-7]{32})"/.exec(begun.text) ?? []
    const confirmed = yield* send(panel, held, `${page}/factor/confirm`, { code: yield* codeOf(secretOf(key)) })
    return {
      begun,
      key,
      confirmed,
      codes: [...confirmed.text.matchAll(/<li>([^<]+)/g)].map(([, code = ""]) => code)
    }
  }
)

describe.each(databases)("the page of one's own account on $name", (backend) => {
  const { test } = usePanel(backend)

  test("is shown to every role with its own data", (panel) =>
    Effect.gen(function*() {
      for (const role of ["viewer", "operator", "admin"] as const) {
        const held = yield* entered(panel, role, role)
        const told = yield* panel.ask(page, held)
        const words = wordsOf(told)
        assert.strictEqual(told.status, 200)
        assert.include(words, "this one")
        assert.include(words, "Set up an authenticator…")
        assert.include(words, "There are none.")
        // A token has at most the role of its owner.
        assert.strictEqual(told.text.includes("<option value=\"admin\">"), role === "admin")
        const fragment = yield* panel.ask(page, { ...held, headers: { "hx-request": "true" } })
        assert.notInclude(fragment.text, "<html")
      }
      assert.strictEqual((yield* panel.ask(page)).status, 303)
    }))

  test("ends the other sessions when the password is changed", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const other = yield* enter("vic")
      const chosen = "a kettle on the second floor"
      const asked = { ...right, newPassword: chosen, repeated: chosen }
      assert.isTrue(
        isBeside(yield* send(panel, held, `${page}/password`, { ...asked, ...wrong }), 403, "step_up_failed")
      )
      assert.isTrue(
        isBeside(yield* send(panel, held, `${page}/password`, { ...asked, repeated: "other" }), 400, "bad_request")
      )
      const weak = { ...asked, newPassword: "short", repeated: "short" }
      assert.isTrue(isBeside(yield* send(panel, held, `${page}/password`, weak), 400, "weak_password"))
      assert.strictEqual((yield* shownOf("vic")).activeSessions, 2)
      const done = yield* send(panel, held, `${page}/password`, asked)
      assert.strictEqual(done.headers["hx-redirect"], `${page}?done=password-changed`)
      assert.strictEqual((yield* shownOf("vic")).activeSessions, 1)
      assert.include(wordsOf(yield* panel.ask(`${page}?done=password-changed`, held)), "Your password is changed.")
      assert.strictEqual(other.identity.username, "vic")
      const before = yield* panel.ask("/ui/login", {
        method: "POST",
        body: new URLSearchParams({ username: "vic", password })
      })
      assert.strictEqual(before.status, 401)
    }))

  test("shows the contact as text and not as markup", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const contact = "vic@example.org"
      assert.isTrue(isBeside(yield* send(panel, held, `${page}/contact`, { ...wrong, contact }), 403, "step_up_failed"))
      assert.isTrue(
        isBeside(yield* send(panel, held, `${page}/contact`, { ...right, contact: "me" }), 400, "bad_request")
      )
      yield* send(panel, held, `${page}/contact`, { ...right, contact })
      assert.include((yield* panel.ask(page, held)).text, contact)
      yield* sql("UPDATE admin_users SET contact_email = '\"><img src=x>\u202e'")
      const { text } = yield* panel.ask(page, held)
      assert.notMatch(text, /<img src=x|\u202e/)
    }))

  test("ends sessions one by one", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* enter("vic")
      yield* sql("UPDATE admin_sessions SET user_agent = '<script>alert(1)</script>'")
      const { text } = yield* panel.ask(page, held)
      assert.notInclude(text, "<script>alert")
      const rows = text.split("<tr>").filter((one) => one.includes("?revoke="))
      const idIn = (row = "") => /\?revoke=([0-9a-f]{16})#/.exec(row)?.[1] ?? ""
      const own = idIn(rows.find((one) => one.includes(">this one<")))
      const other = idIn(rows.find((one) => !one.includes(">this one<")))
      const asked = yield* panel.ask(`${page}?revoke=${other}`, held)
      assert.include(wordsOf(asked), "Whoever uses it is signed out at once.")
      assert.deepStrictEqual([...asked.text.matchAll(/hx-post="([^"]*\/revoke)"/g)].map(([, to]) => to), [
        `${page}/sessions/${other}/revoke`
      ])
      assert.notInclude((yield* panel.ask(`${page}?revoke=0123456789abcdef`, held)).text, "/revoke\"")
      const ended = yield* send(panel, held, `${page}/sessions/${other}/revoke`)
      assert.strictEqual(ended.headers["hx-redirect"], `${page}?done=session-revoked`)
      assert.isTrue(isBeside(yield* send(panel, held, `${page}/sessions/${other}/revoke`), 404, "not_found"))
      const out = yield* send(panel, held, `${page}/sessions/${own}/revoke`)
      assert.strictEqual(out.headers["hx-redirect"], "/ui/login?why=out")
      assert.match(out.headers["set-cookie"] ?? "", /Max-Age=0/)
      assert.strictEqual((yield* panel.ask(page, held)).status, 303)
    }))

  test("signs out of all sessions", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* enter("vic")
      const bare = { cookie: held.cookie, csrf: "" }
      assert.isTrue(isBeside(yield* send(panel, bare, `${page}/sign-out-everywhere`), 403, "csrf_failed"))
      const out = yield* send(panel, held, `${page}/sign-out-everywhere`)
      assert.strictEqual(out.headers["hx-redirect"], "/ui/login?why=out")
      assert.strictEqual((yield* shownOf("vic")).activeSessions, 0)
    }))

  test("shows the key of an authenticator and the recovery codes once", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const { begun, codes, confirmed, key } = yield* enrol(panel, held)
      assert.strictEqual(begun.status, 200)
      assert.include(begun.text, "<svg class=\"qr\"")
      assert.include(
        begun.text.replaceAll("&#x2f;", "/"),
        `otpauth://totp/ACME%20Service%20localhost:vic?secret=${key}`
      )
      assert.strictEqual(begun.headers["cache-control"], "no-store")
      assert.strictEqual(confirmed.status, 200)
      assert.strictEqual(codes.length, 10)
      const { text } = yield* panel.ask(page, held)
      assert.notInclude(text, key)
      assert.notInclude(text, codes[0] ?? "?")
      assert.include(text, "Change the authenticator…")
      assert.isTrue((yield* shownOf("vic")).totpEnabled)
    }))

  test("refuses a wrong code, and a code without an enrolment", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const code = { code: "000000" }
      assert.isTrue(isBeside(yield* send(panel, held, `${page}/factor/confirm`, code), 409, "mfa_not_pending"))
      yield* send(panel, held, `${page}/factor/begin`, right)
      const told = yield* send(panel, held, `${page}/factor/confirm`, { code: "nonsense" })
      assert.include(told.text, "invalid_code")
      assert.strictEqual(told.headers["hx-retarget"], "find .refusal")
      assert.include(wordsOf(yield* panel.ask(page, held)), "an enrolment was begun and not confirmed")
    }))

  test("asks for the password before a change of an active factor", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const { codes } = yield* enrol(panel, held)
      for (const act of ["begin", "codes", "disable"]) {
        assert.isTrue(isBeside(yield* send(panel, held, `${page}/factor/${act}`, wrong), 403, "step_up_failed"), act)
      }
      const renewed = yield* send(panel, held, `${page}/factor/codes`, right)
      assert.strictEqual(renewed.status, 200)
      assert.notInclude(renewed.text, codes[0] ?? "?")
      assert.strictEqual((yield* send(panel, held, `${page}/factor/begin`, right)).status, 200)
      const off = yield* send(panel, held, `${page}/factor/disable`, right)
      assert.strictEqual(off.headers["hx-redirect"], `${page}?done=factor-disabled`)
      assert.isFalse((yield* shownOf("vic")).totpEnabled)
      assert.isTrue(isBeside(yield* send(panel, held, `${page}/factor/codes`, right), 409, "mfa_not_enrolled"))
    }))

  test("shows a new token once", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const asked = { ...right, name: "ci", role: "viewer", expiresInDays: "30", allowedAddresses: "" }
      assert.isTrue(isBeside(yield* send(panel, held, `${page}/tokens`, { ...asked, ...wrong }), 403, "step_up_failed"))
      assert.isTrue(
        isBeside(yield* send(panel, held, `${page}/tokens`, { ...asked, role: "admin" }), 400, "bad_request")
      )
      const minted = yield* send(panel, held, `${page}/tokens`, asked)
      assert.match(minted.text, /acme_svc_[\w-]{43}_[a-z2-7]{6}/)
      assert.isTrue(isBeside(yield* send(panel, held, `${page}/tokens`, asked), 409, "name_taken"))
      const shown = yield* panel.ask(page, held)
      assert.notInclude(shown.text, "acme_svc_")
      assert.include(wordsOf(shown), "ci viewer valid")
      const [token] = (yield* tokens.list("vic", { limit: 1, offset: 0 })).items
      yield* made("bob", "viewer")
      const theirs = yield* entered(panel, "olga", "admin")
      // On this page, not even an admin can revoke a token of another operator.
      assert.strictEqual((yield* send(panel, theirs, `${page}/tokens/${token?.id}/revoke`)).status, 404)
      yield* send(panel, held, `${page}/tokens/${token?.id}/revoke`)
      assert.include(wordsOf(yield* panel.ask(page, held)), "ci viewer revoked")
    }))
})

describe("a path below one's own account", () => {
  const { test } = usePanel(sqlite)

  test("is answered 404 if there is no such page", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      assert.strictEqual((yield* panel.ask(`${page}/nothing`, held)).status, 404)
      assert.strictEqual((yield* send(panel, held, `${page}/tokens/nothing/revoke`)).status, 404)
    }))
})
