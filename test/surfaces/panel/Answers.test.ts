import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as eab from "../../../src/operations/operator/Eab.ts"
import { cookieOf } from "../../support/Asked.ts"
import { sqlite } from "../../support/Databases.ts"
import { made, password } from "../../support/Operators.ts"
import { entered, form, send, usePanel, wordsOf } from "../../support/Panel.ts"

/* Tests the answers of the panel in cases where an operator could be misinformed, or could not continue. */

describe("the panel", () => {
  const { test } = usePanel(sqlite, "[eab]\nenabled = true\n[admin]\nrequire_mfa = false\npage_size_max = 2\n")

  test("redirects from beyond the end of a list to the last page", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "anna", "admin")
      const led = (target: string) =>
        Effect.map(ask(target, held), ({ headers, status }) => [status, headers["location"]])
      for (const path of ["orders", "accounts", "eab", "jobs", "audit?event=order_deleted", "expiring"]) {
        const [to] = path.split("?page")
        const target = `/ui/${path}${path.includes("?") ? "&" : "?"}page=9`
        assert.deepStrictEqual(yield* led(target), [303, `/ui/${to}`], path)
      }
      for (const label of ["one", "two", "three"]) {
        yield* eab.create({ kind: "cli", id: "x" }, { label, profile: undefined })
      }
      assert.deepStrictEqual(yield* led("/ui/eab?page=9"), [303, "/ui/eab?page=2"])
      assert.include(wordsOf(yield* ask("/ui/eab", held)), "1–2 of 3")
      assert.include(wordsOf(yield* ask("/ui/eab?page=2", held)), "3–3 of 3")
    }))

  test("shows its navigation on a refusal to an operator who is signed in", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "vera", "viewer")
      const navigation = "href=\"/ui/orders\""
      for (
        const [target, status] of [["/ui/none", 404], ["/ui/operators", 403], ["/ui/logout", 405]] as const
      ) {
        const told = yield* ask(target, held)
        assert.strictEqual(told.status, status, target)
        assert.include(told.text.replaceAll("&#x2f;", "/"), navigation, target)
      }
      assert.strictEqual((yield* ask("/ui/logout", held)).headers["allow"], "POST")
      const nobody = yield* ask("/ui/none", { headers: { origin: "https://elsewhere.example" } })
      assert.notInclude(nobody.text.replaceAll("&#x2f;", "/"), navigation)
    }))

  test("removes the message about an empty list as soon as the list has an entry", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "anna", "admin")
      const gone = "<div id=\"none\" hx-swap-oob=\"true\" hidden></div>"
      assert.include((yield* panel.ask("/ui/eab", held)).text, "id=\"none\"")
      assert.include((yield* send(panel, held, "/ui/eab", { label: "shop" })).text, gone)
      assert.include((yield* panel.ask("/ui/account", held)).text, "id=\"none\"")
      const token = { name: "t", role: "viewer", expiresInDays: "1", password }
      assert.include((yield* send(panel, held, "/ui/account/tokens", token)).text, gone)
    }))

  test("shows the form for the code of an enrolment even after its page was loaded again", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "anna", "admin")
      assert.notInclude((yield* panel.ask("/ui/account", held)).text, "id=\"enrolment\"")
      yield* send(panel, held, "/ui/account/factor/begin", { password })
      assert.include((yield* panel.ask("/ui/account", held)).text, "id=\"enrolment\"")
    }))

  test("marks an operator's own row, and operators without a contact", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "anna", "admin")
      yield* made("vera", "viewer")
      const words = wordsOf(yield* ask("/ui/operators", held))
      assert.match(words, /anna you admin active off none .*vera viewer active off none/)
    }))
})

describe("the panel if a sign-in demands an enrolment", () => {
  const { test } = usePanel(sqlite, "[admin]\nrequire_mfa = true\n")

  test("continues with the enrolment after its page was loaded again", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("anna", "admin")
      const told = yield* ask("/ui/login", { method: "POST", body: form({ username: "anna", password }) })
      const cookie = cookieOf(told)
      assert.notInclude((yield* ask("/ui/login/enrol", { cookie })).text, "name=\"code\"")
      yield* ask("/ui/login/enrol", { method: "POST", cookie, body: form({}) })
      const again = yield* ask("/ui/login/enrol", { cookie })
      assert.include(again.text, "name=\"code\"")
      assert.notInclude(again.text, "class=\"qr\"", "the key is shown once")
    }))
})
