import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import * as tokens from "../../../src/operations/operator/identity/Tokens.ts"
import { cookieOf } from "../../support/Asked.ts"
import { secretOf } from "../../support/Authenticator.ts"
import { sqlite } from "../../support/Databases.ts"
import { codeOf, keyboard, made, password } from "../../support/Operators.ts"
import { entered, form, usePanel, wordsOf } from "../../support/Panel.ts"

/*
 * Signing in to the panel, with plain forms, and the way back to the requested page
 * (docs/contribute/decisions/panel.md).
 */

describe("the panel", () => {
  const { config, test } = usePanel(sqlite)
  const signIn = (fields: Readonly<Record<string, string>> = {}) => ({
    method: "POST",
    body: form({ username: "ann", password, ...fields })
  })

  test("sends callers without a session to the sign-in page, and then back to the requested page", ({ ask }) =>
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

  test("sends callers whose session was idle too long or has expired to the sign-in page in the same way", ({ ask }) =>
    Effect.gen(function*() {
      const { session_idle_timeout_seconds: idle, session_ttl_seconds: life } = config.admin
      const told = (cookie: string) =>
        Effect.map(ask("/ui/orders", { cookie }), ({ headers, status }) => [status, headers["location"] ?? ""] as const)
      const first = yield* entered({ ask }, "ann", "viewer")
      yield* TestClock.adjust(`${idle} seconds`)
      const gone = yield* told(first.cookie)
      assert.deepStrictEqual(gone, [303, "/ui/login?next=%2Fui%2Forders&why=ended"])
      const second = yield* entered({ ask }, "ben", "viewer")
      for (let at = idle; at < life; at += idle - 1) {
        yield* TestClock.adjust(`${idle - 1} seconds`)
        yield* told(second.cookie)
      }
      yield* TestClock.adjust(`${idle - 1} seconds`)
      assert.deepStrictEqual(yield* told(second.cookie), gone)
    }))

  test("returns only to its own pages", ({ ask }) =>
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

  test("tells a script that the session is lost and where to go, and tells a refresh only that the session is lost", ({ ask }) =>
    Effect.gen(function*() {
      const headers = { "hx-request": "true", "hx-current-url": `${config.admin.base_url}/ui/jobs?kind=a` }
      const told = yield* ask("/ui/orders", { headers })
      assert.strictEqual(told.headers["hx-redirect"], "/ui/login?next=%2Fui%2Fjobs%3Fkind%3Da")
      const refresh = yield* ask("/ui/orders", { headers: { ...headers, "x-panel-refresh": "1" } })
      assert.strictEqual(refresh.status, 401)
      assert.strictEqual(refresh.text, "")
    }))

  test("ends the session of a browser when another session begins there", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const first = cookieOf(yield* ask("/ui/login", signIn()))
      const second = cookieOf(yield* ask("/ui/login", { ...signIn(), cookie: first }))
      assert.strictEqual((yield* ask("/ui/orders", { cookie: first })).status, 303)
      assert.strictEqual((yield* ask("/ui/orders", { cookie: second })).status, 200)
    }))

  test("shows the form again when the password is wrong, without that password", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const told = yield* ask("/ui/login", signIn({ password: "not the password" }))
      assert.strictEqual(told.status, 401)
      assert.include(told.text, "value=\"ann\"")
      assert.include(told.text, "invalid_credentials")
      assert.notProperty(told.headers, "retry-after")
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

  test("ends the session at a sign-out", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const refused = yield* ask("/ui/logout", { method: "POST", cookie: held.cookie })
      assert.strictEqual(refused.status, 403)
      const out = yield* ask("/ui/logout", { method: "POST", ...held })
      assert.strictEqual(out.headers["location"], "/ui/login?why=out")
      assert.match(out.headers["set-cookie"] ?? "", /Max-Age=0/)
      const notices = ["Your session has ended.", "You are signed out."]
      for (const [why, notice] of [["", undefined], ["?why=ended", notices[0]], ["?why=out", notices[1]]] as const) {
        const { text } = yield* ask(`/ui/login${why}`)
        assert.deepStrictEqual(notices.filter((one) => text.includes(one)), [notice].flatMap((one) => one ?? []), why)
      }
      assert.strictEqual((yield* ask("/ui/", { cookie: held.cookie })).status, 303)
    }))

  test("refuses tokens for programs, whatever their role", ({ ask }) =>
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

  test("shows a page that is not there, and one that the role does not permit, in words and within the frame", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "vera", "viewer")
      const [nowhere, gone, closed] = [
        yield* ask("/ui/nowhere", held),
        yield* ask("/ui/orders/01890a5d-ac96-774b-bcce-b302099a8057", held),
        yield* ask("/ui/operators", held)
      ]
      for (const [told, status] of [[nowhere, 404], [gone, 404], [closed, 403]] as const) {
        assert.strictEqual(told.status, status)
        assert.include(told.text, "<nav class=\"side\" aria-label=\"Pages\">")
        assert.notMatch(told.text, /<code>[a-z]+_[a-z_]+<\/code>/)
      }
      assert.include(
        wordsOf(closed),
        "Your role does not permit this. You are signed in as vera, with the role viewer."
      )
      assert.include(wordsOf(gone), "There is no order 01890a5d-ac96-774b-bcce-b302099a8057.")
    }))

  test("says how long to wait when a page takes too long", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/login", { isLate: true })
      assert.deepStrictEqual([told.status, told.headers["retry-after"]], [503, "5"])
      assert.include(told.text, "data-code=\"busy\"")
    }))

  test("allows only its own scripts and styles, no frames and no cache", ({ ask }) =>
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

describe("a sign-in to the panel that needs a second factor", () => {
  const { test } = usePanel(sqlite, "[admin]\nrequire_mfa = true\n")
  const signIn = (fields: Readonly<Record<string, string>> = {}) =>
    ({ method: "POST", body: form({ username: "ann", password, ...fields }) }) as const
  const next = "/ui/jobs"
  const asked = "?next=%2Fui%2Fjobs"
  const plain = (text: string) => text.replaceAll("&#x2f;", "/")
  const hasNext = `name="next" value="${next}"`

  test("demands an enrolment before it opens the requested page", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const told = yield* ask("/ui/login", signIn({ next }))
      assert.deepStrictEqual([told.status, told.headers["location"]], [303, `/ui/login/enrol${asked}`])
      const cookie = cookieOf(told)
      const post = (path: string, fields: Readonly<Record<string, string>>) =>
        ask(`/ui/login/${path}`, { method: "POST", cookie, body: form(fields) })
      const elsewhere = yield* ask(`/ui/login/verify${asked}`, { cookie })
      assert.deepStrictEqual([elsewhere.status, elsewhere.headers["location"]], [303, `/ui/login/enrol${asked}`])
      assert.include(plain((yield* ask(`/ui/login/enrol${asked}`, { cookie })).text), hasNext)
      const early = yield* post("enrol/confirm", { code: "000000", next })
      assert.strictEqual(early.status, 409)
      assert.notInclude(early.text, "name=\"code\"", "there is nothing to confirm")
      const begun = yield* post("enrol", { next })
      assert.include(plain(begun.text), hasNext)
      const secret = secretOf(/secret=([A-Z2-7]+)/.exec(begun.text)?.[1] ?? "")
      const wrong = yield* post("enrol/confirm", { code: "000000", next })
      assert.strictEqual(wrong.status, 401)
      assert.include(wrong.text, "name=\"code\"")
      assert.include(wrong.text, "invalid_credentials")
      assert.include(wrong.text, "The code is wrong or was used before.")
      assert.include(plain(wrong.text), hasNext)
      const done = yield* post("enrol/confirm", { code: yield* codeOf(secret), next })
      assert.strictEqual(done.status, 200, done.text)
      assert.lengthOf([...done.text.matchAll(/<li>/g)], 10)
      assert.include(plain(done.text), `href="${next}"`)
      assert.strictEqual((yield* ask(next, { cookie: cookieOf(done) })).status, 200)
      assert.strictEqual((yield* ask(next, { cookie })).status, 303)

      yield* TestClock.adjust("1 minute")
      for (const [way, to] of [[{ next }, next], [{}, "/ui/"]] as const) {
        const again = yield* ask("/ui/login", signIn(way))
        const query = "next" in way ? asked : ""
        assert.strictEqual(again.headers["location"], `/ui/login/verify${query}`)
        const half = cookieOf(again)
        const verify = (code: string) =>
          ask("/ui/login/verify", { method: "POST", cookie: half, body: form({ code, ...way }) })
        const shown = yield* ask(`/ui/login/verify${query}`, { cookie: half })
        assert.strictEqual(shown.status, 200)
        assert.include(plain(shown.text), `name="next" value="${"next" in way ? next : ""}"`)
        const refused = yield* verify("000000")
        assert.strictEqual(refused.status, 401)
        assert.include(refused.text, "name=\"code\"")
        assert.strictEqual(cookieOf(refused), "")
        const whole = yield* verify(yield* codeOf(secret))
        assert.deepStrictEqual([whole.status, whole.headers["location"]], [303, to])
        assert.strictEqual((yield* ask("/ui/", { cookie: cookieOf(whole) })).status, 200)
        yield* TestClock.adjust("1 minute")
      }
    }))

  test("shows the first page after an enrolment without a requested page", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "viewer")
      const cookie = cookieOf(yield* ask("/ui/login", signIn()))
      const post = (path: string, fields: Readonly<Record<string, string>> = {}) =>
        ask(`/ui/login/${path}`, { method: "POST", cookie, body: form(fields) })
      const secret = secretOf(/secret=([A-Z2-7]+)/.exec((yield* post("enrol")).text)?.[1] ?? "")
      assert.include(plain((yield* post("enrol/confirm", { code: yield* codeOf(secret) })).text), "href=\"/ui/\"")
    }))
})
