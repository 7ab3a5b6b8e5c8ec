import { Effect, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import * as operators from "../../../src/operations/operator/identity/Operators.ts"
import * as links from "../../../src/operations/operator/identity/PasswordLinks.ts"
import { sweepSessions } from "../../../src/operations/work/SessionSweep.ts"
import type { Ask } from "../../support/Asked.ts"
import { cookieOf } from "../../support/Asked.ts"
import { atOnce, tally } from "../../support/AtOnce.ts"
import { databases } from "../../support/Databases.ts"
import { column, count, eventsOf, fieldsOf, sql } from "../../support/Graph.ts"
import { keyboard, made, password, typed } from "../../support/Operators.ts"
import type { AskingPanel } from "../../support/Panel.ts"
import { form, usePanel, wordsOf } from "../../support/Panel.ts"

/* The pages of a link with which an operator sets a password (docs/contribute/decisions/admin.md, "Password links"). */

const chosen = "Gdynia harbour, 7 cranes"

describe.each(databases)("the link to set a password on $name", (backend) => {
  const { config, records, test } = usePanel(
    backend,
    "[admin]\nenabled = true\n[admin.filter]\nforwarded_header = \"X-Our-Client\""
  )
  const { admin } = config

  const here = { host: new URL(admin.base_url).host, origin: admin.base_url }
  const send = ({ ask }: AskingPanel, path: string, fields: Record<string, string>, more: Ask = {}) =>
    ask(path, {
      method: "POST",
      body: form(fields),
      clientIp: "127.0.0.1",
      ...more,
      headers: { ...here, ...more.headers }
    })
  const opened = (panel: AskingPanel, token: string, more: Ask = {}) => send(panel, "/ui/link", { token }, more)
  const set = (panel: AskingPanel, token: string, text = chosen, more: Ask = {}) =>
    send(panel, "/ui/link/password", { token, username: "ann", newPassword: text, repeated: text }, more)
  const linkOf = (username: string) =>
    Effect.map(links.make(config, keyboard, username), ({ url }) => Redacted.value(url).split("#")[1] ?? "")
  const annsLink = Effect.andThen(made("ann", "operator"), linkOf("ann"))
  const signIn = (panel: AskingPanel, text: string) => send(panel, "/ui/login", { username: "ann", password: text })

  test("leads from its page over the choice of a password into the panel, and keeps its token to itself", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      const first = yield* panel.ask("/ui/link", { clientIp: "127.0.0.1", headers: here })
      assert.strictEqual(first.status, 200)
      assert.include(first.text, "data-from-fragment")
      const second = yield* opened(panel, token)
      assert.strictEqual(second.status, 200)
      assert.match(second.text, /name="username"[^>]* readonly value="ann"/)
      const done = yield* set(panel, token)
      assert.deepStrictEqual([done.status, done.headers["location"]], [303, "/ui/"])
      assert.strictEqual((yield* panel.ask("/ui/", { cookie: cookieOf(done) })).status, 200)
      assert.strictEqual((yield* signIn(panel, password)).status, 401)
      assert.strictEqual((yield* signIn(panel, chosen)).status, 303)
      assert.deepStrictEqual(
        yield* column("SELECT event || ' ' || actor_kind || ' ' || detail FROM audit_log ORDER BY id"),
        [
          "operator_created cli {\"target\":\"ann\",\"role\":\"operator\"}",
          "operator_password_link_created cli {\"target\":\"ann\"}",
          "operator_password_changed admin {\"target\":\"ann\",\"sessions_revoked\":0,\"via\":\"link\"}"
        ]
      )
      assert.includeMembers([...eventsOf(records)], ["admin_password_link_created", "admin_operator_password_changed"])
      assert.notInclude(JSON.stringify([records, yield* sql("SELECT * FROM admin_password_links")]), token)
    }))

  test("can be pasted as a whole where scripts are off", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      assert.include((yield* opened(panel, `${admin.base_url}/ui/link#${token}`)).text, "value=\"ann\"")
    }))

  const refusedWith = (told: { readonly status: number; readonly text: string }, status: number, words: string) => {
    assert.strictEqual(told.status, status)
    assert.include(told.text, words)
    assert.match(told.text, /acme-svc admin user (?:passwd|enable) (?:ann|NAME)/)
  }

  test("is good once", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      yield* set(panel, token)
      refusedWith(yield* opened(panel, token), 410, "used already")
      refusedWith(yield* set(panel, token, "Toruń bridges, 5 arches"), 410, "used already")
      assert.strictEqual((yield* signIn(panel, chosen)).status, 303)
    }))

  test("is good for 15 minutes", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      yield* TestClock.adjust("899 seconds")
      assert.strictEqual((yield* opened(panel, token)).status, 200)
      yield* TestClock.adjust("1 second")
      refusedWith(yield* opened(panel, token), 410, "has ended")
      refusedWith(yield* set(panel, token), 410, "has ended")
      assert.strictEqual((yield* signIn(panel, password)).status, 303)
    }))

  test("is refused to other machines, whatever they send", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      for (const clientIp of ["192.0.2.1", "2001:db8::1"]) {
        refusedWith(yield* opened(panel, token, { clientIp }), 403, "machine on which the service runs")
        refusedWith(yield* set(panel, token, chosen, { clientIp }), 403, "machine on which the service runs")
        refusedWith(yield* panel.ask("/ui/link", { clientIp, headers: here }), 403, "machine on which the service runs")
      }
      assert.strictEqual(fieldsOf(records, "admin_password_link_refused").length, 6)
      assert.strictEqual(yield* count("SELECT count(*) FROM login_attempts"), 0)
      assert.strictEqual((yield* opened(panel, token, { clientIp: "::1" })).status, 200)
    }))

  test("is refused behind a proxy", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      const headers = ["x-forwarded-for", "x-forwarded-host", "forwarded", "via", "x-real-ip", "x-our-client"]
      for (const name of headers) {
        const more = { headers: { [name]: "127.0.0.1" } }
        refusedWith(yield* opened(panel, token, more), 403, "without a proxy")
        refusedWith(yield* set(panel, token, chosen, more), 403, "without a proxy")
      }
      refusedWith(yield* opened(panel, token, { headers: { host: "acme.example.org" } }), 403, "without a proxy")
      assert.strictEqual((yield* opened(panel, token)).status, 200)
    }))

  test("is refused from a page of another origin", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      const told = yield* set(panel, token, chosen, { headers: { origin: "http://evil.localhost" } })
      assert.strictEqual(told.status, 403)
      assert.strictEqual((yield* opened(panel, token)).status, 200)
    }))

  test("is not found with a wrong token or after a newer link, and too many wrong ones have to wait", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      const newer = yield* linkOf("ann")
      for (const wrong of [token, `${newer.slice(0, -1)}_`, "", "x"]) {
        refusedWith(yield* opened(panel, wrong), 404, "no such link")
      }
      refusedWith(yield* set(panel, token), 404, "no such link")
      const late = yield* opened(panel, newer)
      assert.strictEqual(late.status, 429)
      assert.property(late.headers, "retry-after")
      yield* TestClock.adjust(`${admin.login_window_seconds} seconds`)
      assert.strictEqual((yield* opened(panel, newer)).status, 200)
    }))

  test("costs no more when it is good than when it is wrong, and counts as no failed sign-in", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      for (let time = 0; time < 8; time++) assert.strictEqual((yield* opened(panel, token)).status, 200)
    }))

  test("stays good after a password that the rules refuse or that was typed differently", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      for (let time = 0; time < 6; time++) {
        const weak = yield* set(panel, token, "short")
        assert.strictEqual(weak.status, 400)
        assert.include(weak.text, "weak_password")
        assert.notInclude(weak.text, "short\"")
      }
      const fields = { token, username: "ann", newPassword: chosen, repeated: `${chosen}!` }
      const differs = yield* send(panel, "/ui/link/password", fields)
      assert.strictEqual(differs.status, 400)
      assert.include(wordsOf(differs), "its repetition differ")
      assert.strictEqual((yield* set(panel, token)).status, 303)
    }))

  test("sets one password when it is used in several tabs at once", (panel) =>
    Effect.gen(function*() {
      const token = yield* annsLink
      const texts = Array.from({ length: 4 }, (_, tab) => `${chosen}, tab ${tab}`)
      const told = yield* Effect.forEach(texts, (text) => set(panel, token, text), { concurrency: "unbounded" })
      assert.deepStrictEqual(told.map(({ status }) => status).toSorted(), [303, 410, 410, 410])
      const winner = texts[told.findIndex(({ status }) => status === 303)] ?? ""
      yield* sql("DELETE FROM login_attempts")
      assert.strictEqual((yield* signIn(panel, winner)).status, 303)
      assert.strictEqual(yield* count("SELECT count(*) FROM audit_log WHERE event = 'operator_password_changed'"), 1)
    }))

  test("is void once the password was set in another way, and of no use to a disabled operator", (panel) =>
    Effect.gen(function*() {
      const first = yield* annsLink
      yield* operators.setPassword(config, keyboard, "ann", typed("Toruń bridges, 5 arches"))
      refusedWith(yield* set(panel, first), 404, "no such link")
      const second = yield* linkOf("ann")
      yield* made("root", "admin")
      yield* operators.disable(keyboard, "ann")
      refusedWith(yield* set(panel, second), 403, "disabled")
      const refusal = yield* Effect.flip(links.make(config, keyboard, "ann"))
      assert.deepInclude(refusal, { _tag: "BadRequest" })
      yield* operators.remove(keyboard, "ann")
      refusedWith(yield* opened(panel, second), 404, "no such link")
    }))

  test("is not made for nobody, nor where it could not be used", () =>
    Effect.gen(function*() {
      yield* made("ann", "operator")
      const why = (settings: Partial<typeof admin>, username = "ann") =>
        Effect.flip(links.make({ admin: { ...admin, ...settings } }, keyboard, username))
      assert.deepInclude(yield* why({}, "nobody"), { _tag: "NoSuch", id: "nobody" })
      assert.deepInclude(yield* why({ enabled: false }), {
        detail: "admin.enabled is off, so that nothing serves the panel. Use `acme-svc admin user passwd ann`."
      })
      assert.deepInclude(yield* why({ base_url: "https://acme.example.org" }), {
        detail:
          "A link is good on the machine of the service alone, and admin.base_url is https://acme.example.org. Use `acme-svc admin user passwd ann`."
      })
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_password_links"), 0)
    }))

  test("is swept after its end, but not while it is owed", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* links.createFirst(config, keyboard), "admin")
      yield* annsLink
      yield* linkOf("admin")
      yield* sweepSessions(admin)
      assert.strictEqual(yield* count("SELECT count(*) FROM admin_password_links"), 2)
      yield* sql("UPDATE admin_password_links SET expires_at = 1000")
      yield* sweepSessions(admin)
      assert.deepStrictEqual(yield* column("SELECT owed FROM admin_password_links"), ["1"])
    }))

  const late = { _tag: "NameTaken" } as const

  test("is owed to the first operator alone, until the password is set", (panel) =>
    Effect.gen(function*() {
      // Whoever comes after the first has made the operator is told nothing, and whoever comes meanwhile fails.
      const first = Effect.filterOrFail(links.createFirst(config, keyboard), (name) => name !== undefined, () => late)
      assert.deepStrictEqual(tally(yield* atOnce(3, first)), { done: 1, NameTaken: 2 })
      assert.strictEqual(yield* links.createFirst(config, keyboard), undefined)
      assert.strictEqual(yield* links.owed, "admin")
      const token = yield* linkOf("admin")
      assert.strictEqual(yield* links.owed, "admin")
      yield* set(panel, token)
      assert.strictEqual(yield* links.owed, undefined)
    }))
})
