import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as tokens from "../../../src/operations/operators/Tokens.ts"
import { cookieOf } from "../../support/Asked.ts"
import { sqlite } from "../../support/Databases.ts"
import { keyboard, made, password } from "../../support/Operators.ts"
import { entered, form, usePanel } from "../../support/Panel.ts"

/* Signing in to the panel: plain forms, and a way back to where one was (docs/decisions/panel.md). */

describe("the panel", () => {
  const { config, test } = usePanel(sqlite)
  const signIn = (fields: Readonly<Record<string, string>> = {}) => ({
    method: "POST",
    body: form({ username: "ann", password, ...fields })
  })

  test("bounces whoever has no session to sign-in, and back to where they were", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const bounced = yield* ask("/ui/orders?status=valid")
      assert.strictEqual(bounced.status, 303)
      const login = bounced.headers["location"] ?? ""
      assert.strictEqual(login, "/ui/login?next=%2Fui%2Forders%3Fstatus%3Dvalid")
      const nowhere = yield* ask("/ui/none")
      assert.deepStrictEqual(
        [nowhere.status, nowhere.headers["location"]],
        [303, "/ui/login?next=%2Fui%2Fnone"],
        "and a stranger does not learn which pages there are"
      )
      const page = yield* ask(login)
      assert.include(page.text, "name=\"next\"")
      const next = new URL(login, "http://a.example").searchParams.get("next") ?? ""
      const told = yield* ask("/ui/login", signIn({ next }))
      assert.strictEqual(told.status, 303)
      assert.strictEqual(told.headers["location"], "/ui/orders?status=valid")
      assert.strictEqual((yield* ask("/ui/orders?status=valid", { cookie: cookieOf(told) })).status, 200)
    }))

  test("goes back to pages of its own only", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const foreign = [
        "//evil.example/ui/",
        "https://evil.example/ui/",
        "/ui/../api",
        "/ui//evil",
        "/ui/\\evil",
        "/ui/login"
      ]
      for (const next of foreign) {
        const told = yield* ask("/ui/login", signIn({ next }))
        assert.strictEqual(told.headers["location"], "/ui/", next)
      }
    }))

  test("tells a script of a lost session where to go, and a refresh of itself nothing but that it is over", ({ ask }) =>
    Effect.gen(function*() {
      const headers = { "hx-request": "true", "hx-current-url": `${config.admin.base_url}/ui/jobs?kind=a` }
      const told = yield* ask("/ui/orders", { headers })
      assert.strictEqual(told.headers["hx-redirect"], "/ui/login?next=%2Fui%2Fjobs%3Fkind%3Da")
      const refresh = yield* ask("/ui/orders", { headers: { ...headers, "x-panel-refresh": "1" } })
      assert.strictEqual(refresh.status, 401)
      assert.strictEqual(refresh.text, "")
    }))

  test("shows the form again when the password is wrong, with the name and without the password", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const told = yield* ask("/ui/login", signIn({ password: "not the password" }))
      assert.strictEqual(told.status, 401)
      assert.include(told.text, "value=\"ann\"")
      assert.include(told.text, "invalid_credentials")
      assert.notInclude(told.text, "not the password")
      assert.strictEqual(cookieOf(told), "")
      const markup = "\"><script>alert(1)</script><img src=x onerror=alert(1)>"
      const planted = yield* ask("/ui/login", signIn({ username: markup, password: "not the password" }))
      assert.strictEqual(planted.status, 401)
      assert.notMatch(planted.text, /<script(?![^>]*\ssrc=)|<img src=x|"><script/)
      assert.include(planted.text, "&lt;script&gt;", "the name is there, as text")
    }))

  test("says how long to wait after too many attempts", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      for (let tries = 0; tries < config.admin.login_max_attempts; tries++) {
        yield* ask("/ui/login", signIn({ password: "not the password" }))
      }
      const told = yield* ask("/ui/login", signIn())
      assert.strictEqual(told.status, 429)
      assert.strictEqual(told.headers["retry-after"], String(config.admin.login_window_seconds))
      assert.include(told.text, "try again in 300 seconds")
    }))

  test("is left by signing out, which takes the token of the session", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const refused = yield* ask("/ui/logout", { method: "POST", cookie: held.cookie })
      assert.strictEqual(refused.status, 403)
      const out = yield* ask("/ui/logout", { method: "POST", ...held })
      assert.strictEqual(out.headers["location"], "/ui/login?why=out")
      assert.match(out.headers["set-cookie"] ?? "", /Max-Age=0/)
      assert.strictEqual((yield* ask("/ui/", { cookie: held.cookie })).status, 303)
    }))

  test("is not reached by tokens for programs, whatever their role", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "admin")
      const asked = { username: "ann", name: "backup", role: "admin", expiresInDays: 1, allowedAddresses: [] } as const
      const { token } = yield* tokens.create(keyboard, asked)
      for (const path of ["/ui/", "/ui/orders", "/ui/operators", "/ui/account"]) {
        const told = yield* ask(path, { headers: { authorization: `Bearer ${token}` } })
        assert.strictEqual(told.status, 403, path)
        assert.include(told.text, "insufficient_role")
      }
    }))

  test("says how long to wait when a page takes too long", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/login", { isLate: true })
      assert.deepStrictEqual([told.status, told.headers["retry-after"]], [503, "5"])
      assert.include(told.text, "<code>busy</code>")
    }))

  test("allows no script, style or frame but its own, and is never cached", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/login")
      for (const one of [told, yield* ask("/ui/login/"), yield* ask("/ui/login", { isLate: true })]) {
        assert.sameMembers((one.headers["content-security-policy"] ?? "").split("; "), [
          "default-src 'none'",
          "script-src 'self'",
          "style-src 'self'",
          "img-src 'self' data:",
          "connect-src 'self'",
          "form-action 'self'",
          "base-uri 'none'",
          "frame-ancestors 'none'"
        ])
        assert.deepInclude(one.headers, {
          "cache-control": "no-store",
          vary: "HX-Request",
          "referrer-policy": "same-origin"
        })
      }
      assert.notMatch(told.text, /<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/)
      const file = /href="([^"]*panel-[0-9a-f]{12}\.css)"/.exec(told.text.replaceAll("&#x2f;", "/"))?.[1] ?? ""
      const kept = yield* ask(file, { headers: { "accept-encoding": "gzip" } })
      assert.strictEqual(kept.status, 200)
      assert.include(kept.headers["cache-control"], "immutable")
      assert.strictEqual(kept.headers["content-encoding"], "gzip")
      assert.strictEqual((yield* ask("/ui/static/panel-000000000000.css")).status, 404)
    }))
})
