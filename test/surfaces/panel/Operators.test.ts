import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as operators from "../../../src/operations/operator/identity/Operators.ts"
import * as tokens from "../../../src/operations/operator/identity/Tokens.ts"
import { databases } from "../../support/Databases.ts"
import { count, sql } from "../../support/Graph.ts"
import { config, enrolled, enter, made, password } from "../../support/Operators.ts"
import { entered, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"

/* Operators, for admins: every change asks for the password of the admin. */

describe.each(databases)("the pages of operators on $name", (backend) => {
  const { test } = usePanel(backend)
  const right = { password }
  const shownOf = (username: string) => operators.show(config.admin, username)

  test("are open to admins only", (panel) =>
    Effect.gen(function*() {
      yield* made("bob", "viewer")
      for (const role of ["viewer", "operator"] as const) {
        const held = yield* entered(panel, role, role)
        assert.strictEqual((yield* panel.ask("/ui/operators", held)).status, 403)
        // The answer does not tell whether there is such an operator.
        assert.strictEqual((yield* panel.ask("/ui/operators/bob", held)).status, 403)
        assert.strictEqual((yield* panel.ask("/ui/operators/nobody", held)).status, 403)
        assert.isTrue(isBeside(yield* send(panel, held, "/ui/operators/bob/disable", right), 403, "insufficient_role"))
      }
    }))

  test("show 25 sessions and the number of older ones", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "viewer")
      for (const [username, path] of [["bob", "/ui/operators/bob"], ["ann", "/ui/account"]] as const) {
        const known = username === "ann" ? 1 : 0
        yield* Effect.replicateEffect(enter(username), 25 - known, { discard: true })
        assert.notInclude(wordsOf(yield* panel.ask(path, held)), "older ones", path)
        yield* enter(username)
        assert.include(wordsOf(yield* panel.ask(path, held)), "And 1 older ones: acme-svc admin session list", path)
      }
    }))

  test("list operators by their filters", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "viewer")
      const all = wordsOf(yield* panel.ask("/ui/operators", held))
      assert.include(all, "ann you admin active off")
      assert.include(all, "bob viewer active off none never")
      assert.include(all, "1–2 of 2")
      const some = wordsOf(
        yield* panel.ask("/ui/operators?role=viewer", { ...held, headers: { "hx-request": "true" } })
      )
      assert.include(some, "bob viewer")
      assert.notInclude(some, "ann you admin active")
      assert.include(wordsOf(yield* panel.ask("/ui/operators?status=disabled", held)), "No operator matches.")
      const odd = yield* panel.ask("/ui/operators?role=%3Cb%3Eking", held)
      assert.strictEqual(odd.status, 400)
      assert.notInclude(odd.text, "<b>king")
    }))

  test("change nothing when the caller's password is wrong", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "viewer")
      const wrong = { password: "not the password" }
      const more: { readonly [act: string]: { readonly [field: string]: string } } = {
        role: { role: "admin" },
        contact: { contact: "x@example.org" },
        tokens: { name: "x", expiresInDays: "1" }
      }
      for (const act of ["disable", "enable", "role", "contact", "reset-factor"]) {
        const told = yield* send(panel, held, `/ui/operators/bob/${act}`, { ...wrong, ...more[act] })
        assert.isTrue(isBeside(told, 403, "step_up_failed"), act)
        yield* sql("DELETE FROM login_attempts")
      }
      // A session ends with its fifth wrong password.
      const again = yield* entered(panel, "amy", "admin")
      for (const act of ["sessions/revoke", "sessions/0123456789abcdef/revoke", "tokens"]) {
        const told = yield* send(panel, again, `/ui/operators/bob/${act}`, { ...wrong, ...more[act] })
        assert.isTrue(isBeside(told, 403, "step_up_failed"), act)
        yield* sql("DELETE FROM login_attempts")
      }
      assert.include(yield* shownOf("bob"), { status: "active", role: "viewer" })
    }))

  test("disable and enable an operator", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      const theirs = yield* entered(panel, "bob", "operator")
      const told = yield* send(panel, held, "/ui/operators/bob/disable", right)
      assert.strictEqual(told.headers["hx-redirect"], "/ui/operators/bob?done=disabled")
      assert.strictEqual((yield* panel.ask("/ui/", { cookie: theirs.cookie })).status, 303)
      const card = wordsOf(yield* panel.ask("/ui/operators/bob?done=disabled", held))
      assert.include(card, "The operator is disabled.")
      assert.include(card, "Enable…")
      assert.notInclude(card, "Disable…")
      yield* send(panel, held, "/ui/operators/bob/enable", right)
      assert.strictEqual((yield* shownOf("bob")).status, "active")
    }))

  test("change the role and the contact of an operator", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "viewer")
      yield* send(panel, held, "/ui/operators/bob/role", { ...right, role: "operator" })
      yield* send(panel, held, "/ui/operators/bob/contact", { ...right, contact: "bob@example.org" })
      const shown = yield* shownOf("bob")
      assert.deepStrictEqual([shown.role, shown.contactEmail], ["operator", "bob@example.org"])
      for (const role of ["", "king"]) {
        const told = yield* send(panel, held, "/ui/operators/bob/role", { ...right, role })
        assert.strictEqual(told.status, 400)
      }
      const odd = yield* send(panel, held, "/ui/operators/bob/contact", { ...right, contact: "<img src=x>" })
      assert.isTrue(isBeside(odd, 400, "bad_request"))
      yield* send(panel, held, "/ui/operators/bob/contact", { ...right, contact: "" })
      assert.isUndefined((yield* shownOf("bob")).contactEmail)
    }))

  test("refuse the actions that admins may not take on themselves", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      const card = yield* panel.ask("/ui/operators/ann", held)
      assert.include(wordsOf(card), "Nobody changes their own role")
      assert.notMatch(
        card.text.replaceAll("&#x2f;", "/"),
        /hx-post="\/ui\/operators\/ann\/(?:disable|role|reset-factor)"/
      )
      for (const act of ["disable", "role", "reset-factor"]) {
        const told = yield* send(panel, held, `/ui/operators/ann/${act}`, {
          ...right,
          ...act === "role" ? { role: "viewer" } : {}
        })
        assert.isTrue(isBeside(told, 409, "self_target"), act)
      }
    }))

  test("offer the reset of a second factor only if the operator has one", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "viewer")
      assert.include(wordsOf(yield* panel.ask("/ui/operators/bob", held)), "There is no second factor to reset.")
      const nothing = yield* send(panel, held, "/ui/operators/bob/reset-factor", right)
      assert.strictEqual(nothing.headers["hx-redirect"], "/ui/operators/bob?done=factor-reset")
      assert.strictEqual(
        yield* count("SELECT count(*) FROM audit_log WHERE event = 'operator_totp_disabled'"),
        0,
        "nothing was removed"
      )
      yield* enrolled((yield* enter("bob")).identity)
      assert.include(
        wordsOf(yield* panel.ask("/ui/operators/bob", held)),
        "Removes their authenticator and 10 recovery codes"
      )
      yield* send(panel, held, "/ui/operators/bob/reset-factor", right)
      assert.isFalse((yield* shownOf("bob")).totpEnabled)
    }))

  test("end one or all sessions of an operator", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "viewer")
      for (let many = 0; many < 3; many++) yield* enter("bob")
      const [, id = ""] = /\?revoke=([0-9a-f]{16})#/.exec((yield* panel.ask("/ui/operators/bob", held)).text) ?? []
      const card = yield* panel.ask(`/ui/operators/bob?revoke=${id}`, held)
      assert.include(card.text, `hx-post="/ui/operators/bob/sessions/${id}/revoke"`)
      yield* send(panel, held, `/ui/operators/bob/sessions/${id}/revoke`, right)
      assert.strictEqual((yield* shownOf("bob")).activeSessions, 2)
      const gone = yield* send(panel, held, `/ui/operators/bob/sessions/${id}/revoke`, right)
      assert.isTrue(isBeside(gone, 404, "not_found"))
      const all = yield* send(panel, held, "/ui/operators/bob/sessions/revoke", right)
      assert.strictEqual(all.headers["hx-redirect"], "/ui/operators/bob?done=sessions-revoked")
      assert.strictEqual((yield* shownOf("bob")).activeSessions, 0)
    }))

  test("make a token for an operator, show it once, and revoke it", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "operator")
      const asked = {
        ...right,
        name: "<b>ci</b>",
        role: "operator",
        expiresInDays: "30",
        allowedAddresses: "192.0.2.0/24\n2001:db8::1"
      }
      const minted = yield* send(panel, held, "/ui/operators/bob/tokens", asked)
      assert.strictEqual(minted.status, 200)
      assert.match(minted.text, /acme_svc_[\w-]{43}_[a-z2-7]{6}/)
      assert.notInclude(minted.text, "<b>ci")
      const card = yield* panel.ask("/ui/operators/bob", held)
      assert.notMatch(card.text, /acme_svc_/)
      assert.include(wordsOf(card), "192.0.2.0/24, 2001:db8::1")
      const taken = yield* send(panel, held, "/ui/operators/bob/tokens", asked)
      assert.isTrue(isBeside(taken, 409, "name_taken"))
      for (
        const odd of [{ role: "admin" }, { expiresInDays: "0" }, { expiresInDays: "soon" }, {
          allowedAddresses: "here"
        }]
      ) {
        const told = yield* send(panel, held, "/ui/operators/bob/tokens", { ...asked, name: "other", ...odd })
        assert.isTrue(isBeside(told, 400, "bad_request"), JSON.stringify(odd))
      }
      const [token] = (yield* tokens.list("bob", { limit: 1, offset: 0 })).items
      // The token is not found under another operator.
      assert.strictEqual((yield* send(panel, held, `/ui/operators/ann/tokens/${token?.id}/revoke`, right)).status, 404)
      yield* send(panel, held, `/ui/operators/bob/tokens/${token?.id}/revoke`, right)
      assert.isDefined((yield* tokens.find(token?.id ?? "")).revokedAt)
    }))

  test("escape the stored texts of an operator", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      yield* made("bob", "viewer")
      yield* sql("UPDATE admin_users SET contact_email = '\"><img src=x>\u202e' WHERE username = 'bob'")
      for (const path of ["/ui/operators", "/ui/operators/bob"]) {
        const { text } = yield* panel.ask(path, held)
        assert.notMatch(text, /<img src=x|\u202e/, path)
        assert.include(text, "⟨U+202E⟩")
      }
      assert.strictEqual((yield* panel.ask("/ui/operators/nobody", held)).status, 404)
      const none = yield* panel.ask("/ui/operators/%3Cb%3E", held)
      assert.strictEqual(none.status, 404)
      assert.notInclude(none.text, "<b>")
    }))
})
