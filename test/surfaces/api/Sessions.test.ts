import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import { signedIn, useApi } from "../../support/Api.ts"
import { cookieOf } from "../../support/Asked.ts"
import { secretOf } from "../../support/Authenticator.ts"
import { sqlite } from "../../support/Databases.ts"
import { codeOf, made, password } from "../../support/Operators.ts"

/* Sessions over the API: cookies, CSRF tokens, origins (docs/contribute/decisions/admin.md, "Sessions"). */

const signIn = (username: string, given = password) =>
  ({ method: "POST", body: { username, password: given } }) as const

describe("a session over the API", () => {
  const { config, test } = useApi(sqlite)

  test("begins with a cookie that only this host can set and that no script can read", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "admin")
      const told = yield* ask("/api/session", signIn("ann"))
      assert.strictEqual(told.status, 200, told.text)
      assert.match(
        told.headers["set-cookie"] ?? "",
        /^__Host-acme_admin_session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/
      )
      assert.strictEqual(told.headers["cache-control"], "no-store")
      assert.strictEqual(told.json.user.username, "ann")
      assert.strictEqual(told.json.user.role, "admin")
    }))

  test("sends its cookie only in the answer to its sign-in", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "ann", "admin")
      assert.notProperty((yield* ask("/api/session", held)).headers, "set-cookie")
      yield* ask("/api/session", { method: "DELETE", ...held })
      assert.notProperty((yield* ask("/health")).headers, "set-cookie")
    }))

  test("is refused with the same answer, whatever was wrong with the sign-in", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "admin")
      const wrong = yield* ask("/api/session", signIn("ann", "another password"))
      const unknown = yield* ask("/api/session", { ...signIn("bob"), clientIp: "192.0.2.2" })
      assert.strictEqual(wrong.status, 401)
      assert.deepStrictEqual(wrong.json, unknown.json)
      assert.strictEqual(wrong.json.error, "invalid_credentials")
      assert.notProperty(wrong.headers, "retry-after", "nothing is to be waited for")
    }))

  test("can be requested from one address only a limited number of times", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("ann", "admin")
      for (let tries = 0; tries < config.admin.login_max_attempts; tries++) {
        yield* ask("/api/session", signIn("ann", "wrong one"))
      }
      const refused = yield* ask("/api/session", signIn("ann"))
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(refused.headers["retry-after"], String(config.admin.login_window_seconds))
      assert.strictEqual((yield* ask("/api/session", { ...signIn("ann"), clientIp: "192.0.2.7" })).status, 200)
    }))

  test("can change nothing without its CSRF token, with another token, or from another origin", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "otto", "operator")
      const other = yield* signedIn({ ask }, "olga", "operator")
      const mint = { method: "POST", cookie: held.cookie, body: { label: "a" } } as const
      for (
        const refused of [
          mint,
          { ...mint, csrf: other.csrf },
          { ...mint, csrf: "" },
          { ...mint, csrf: held.csrf, headers: { origin: "https://evil.example" } },
          { ...mint, csrf: held.csrf, headers: { origin: "null" } },
          { ...mint, csrf: held.csrf, headers: { "sec-fetch-site": "cross-site" } }
        ]
      ) {
        const told = yield* ask("/api/eab", refused)
        assert.deepStrictEqual([told.status, told.json.error], [403, "csrf_failed"])
      }
      const said = (headers: Readonly<Record<string, string>>) =>
        Effect.map(ask("/api/eab", { ...mint, csrf: held.csrf, headers }), ({ json }) => String(json.message))
      const there = `the panel is at ${config.admin.base_url}/ui/, as admin.base_url says.`
      assert.strictEqual(
        yield* said({ origin: "http://127.0.0.1:3001" }),
        `This page came from http://127.0.0.1:3001; ${there}`
      )
      for (const origin of ["null", "", "javascript:alert(1)", "http://a b", `http://${"a".repeat(400)}`]) {
        assert.strictEqual(yield* said({ origin }), `This page came from another site; ${there}`)
      }
      const headers = { origin: new URL(config.admin.base_url).origin, "sec-fetch-site": "same-origin" }
      assert.strictEqual((yield* ask("/api/eab", { ...mint, csrf: held.csrf, headers })).status, 201)
    }))

  test("ends when it was idle too long, when its time is over, and when its operator signs out", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "vera", "viewer")
      const gone = yield* ask("/api/session", { method: "DELETE", ...held })
      assert.strictEqual(gone.status, 204)
      assert.match(gone.headers["set-cookie"] ?? "", /Max-Age=0/)
      assert.strictEqual((yield* ask("/api/session", held)).json.error, "session_invalid")
      const begun = yield* Effect.replicateEffect(ask("/api/session", signIn("vera")), 3)
      const [one, other] = begun
      for (const [query, told, left] of [["", one, [401, 200, 200]], ["?all=true", other, [401, 401, 401]]] as const) {
        if (told === undefined) return assert.fail("nobody is signed in")
        yield* ask(`/api/session${query}`, { method: "DELETE", cookie: cookieOf(told), csrf: told.json.csrfToken })
        const statuses = yield* Effect.forEach(begun, (each) => ask("/api/session", { cookie: cookieOf(each) }))
        assert.deepStrictEqual(statuses.map(({ status }) => status), [...left], query)
      }
      const idle = yield* ask("/api/session", signIn("vera"))
      yield* TestClock.adjust(`${config.admin.session_idle_timeout_seconds + 1} seconds`)
      assert.strictEqual((yield* ask("/api/session", { cookie: cookieOf(idle) })).json.error, "session_idle")
      const long = cookieOf(yield* ask("/api/session", signIn("vera")))
      for (let at = 0; at < config.admin.session_ttl_seconds; at += 1800) {
        yield* ask("/api/session", { cookie: long })
        yield* TestClock.adjust("1800 seconds")
      }
      assert.strictEqual((yield* ask("/api/session", { cookie: long })).json.error, "session_expired")
    }))

  test("is not prolonged by requests that a page sends by itself", ({ ask }) =>
    Effect.gen(function*() {
      const { cookie } = yield* signedIn({ ask }, "vera", "viewer")
      const refresh = ask("/api/session", { cookie, headers: { "x-panel-refresh": "1" } })
      for (let at = 0; at < config.admin.session_idle_timeout_seconds; at += 600) {
        assert.strictEqual((yield* refresh).status, 200)
        yield* TestClock.adjust("600 seconds")
      }
      assert.strictEqual((yield* refresh).json.error, "session_idle")
    }))

  test("is incomplete until the code of a required second factor is entered", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "ann", "admin")
      const begun = yield* ask("/api/mfa/totp", { method: "POST", ...held, body: { password } })
      assert.strictEqual(begun.status, 201, begun.text)
      const secret = secretOf(begun.json.secret)
      const confirmed = yield* ask("/api/mfa/totp/confirm", {
        method: "POST",
        ...held,
        body: { code: yield* codeOf(secret) }
      })
      assert.lengthOf(confirmed.json.recoveryCodes, 10)
      yield* TestClock.adjust("1 minute")
      const told = yield* ask("/api/session", signIn("ann"))
      assert.deepInclude(told.json, { mfaRequired: true, step: "verify" })
      assert.notProperty(told.json, "user")
      const cookie = cookieOf(told)
      assert.strictEqual((yield* ask("/api/orders", { cookie })).json.error, "mfa_pending")
      assert.deepStrictEqual((yield* ask("/api/session/mfa", { cookie })).json, { step: "verify" })
      const wrong = yield* ask("/api/session/mfa", { method: "POST", cookie, body: { code: "000000" } })
      const failed = yield* ask("/api/session", signIn("ann", "not her password at all"))
      assert.deepStrictEqual([wrong.status, wrong.json], [failed.status, failed.json])
      const whole = yield* ask("/api/session/mfa", { method: "POST", cookie, body: { code: yield* codeOf(secret) } })
      assert.strictEqual(whole.status, 200, whole.text)
      assert.notStrictEqual(cookieOf(whole), cookie)
      assert.strictEqual((yield* ask("/api/orders", { cookie: cookieOf(whole) })).status, 200)
      assert.strictEqual((yield* ask("/api/orders", { cookie })).status, 401)
    }))

  test("ends when another session begins in its browser, but not when a sign-in fails", ({ ask }) =>
    Effect.gen(function*() {
      const { cookie } = yield* signedIn({ ask }, "ann", "admin")
      yield* made("vera", "viewer")
      yield* ask("/api/session", { ...signIn("vera", "not her password at all"), cookie })
      assert.strictEqual((yield* ask("/api/session", { cookie })).status, 200)
      const veras = cookieOf(yield* ask("/api/session", { ...signIn("vera"), cookie }))
      assert.strictEqual((yield* ask("/api/session", { cookie })).json.error, "session_invalid")
      assert.strictEqual((yield* ask("/api/session", { cookie: veras })).json.user.username, "vera")
    }))

  test("is not looked up by a probe, whatever the probe sends", ({ ask }) =>
    Effect.gen(function*() {
      const shown = [{}, { cookie: "nobody's" }, { headers: { authorization: "Bearer acme_svc_nobodys" } }]
      for (const one of shown) assert.deepStrictEqual((yield* ask("/health", one)).json, { healthy: true })
    }))

  test("is refused together with an API token in one request", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* signedIn({ ask }, "otto", "operator")
      const minted = yield* ask("/api/tokens", {
        method: "POST",
        ...held,
        body: { password, name: "ansible", role: "operator", expiresInDays: 30 }
      })
      assert.strictEqual(minted.status, 201, minted.text)
      const headers = { authorization: `Bearer ${minted.json.token}` }
      assert.strictEqual((yield* ask("/api/orders", { cookie: held.cookie, headers })).json.error, "bad_request")
      const made = yield* ask("/api/eab", { method: "POST", headers, body: { label: "by a program" } })
      assert.strictEqual(made.status, 201, made.text)
      assert.strictEqual((yield* ask("/api/orders", { headers: { authorization: "Bearer acme_svc_x" } })).status, 401)
    }))
})
