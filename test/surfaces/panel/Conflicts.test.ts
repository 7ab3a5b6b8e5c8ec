import { Effect } from "effect"
import { assert, describe } from "vitest"
import { databases } from "../../support/Databases.ts"
import { callerAt, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { password } from "../../support/Operators.ts"
import { entered, form, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"

/*
 * Tests what happens to a form whose record has changed since its page was shown (docs/contribute/decisions/panel.md,
 * "Pages and fragments").
 */

describe.each(databases)("a conflict on $name", (backend) => {
  const { config, test } = usePanel(backend)
  /** Sends a form in the same way as the script of the page does. */
  const from = (page: string) => ({
    "hx-request": "true",
    "hx-current-url": `${config.admin.base_url}${page}`
  })

  /** An order without a certificate. */
  const pending = Effect.gen(function*() {
    const caller = yield* callerAt(profileOf(config))
    const { id } = yield* orderOf(caller, "a.example")
    return { accountId: caller.accountId, orderId: id }
  })

  test("is answered with the present page below the refusal", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "otto", "operator")
      const { accountId, orderId } = yield* pending
      yield* sql(
        `UPDATE orders SET certificate = 'x', leaf = NULL, cert_serial = '01', cert_not_after = 4000000000, status = 'valid'`
      )
      for (const path of [`/ui/orders/${orderId}`, `/ui/accounts/${accountId}`]) {
        const told = yield* panel.ask(`${path}/delete`, {
          method: "POST",
          body: form({}),
          headers: from(`${path}?done=contact&page=1`),
          ...held
        })
        assert.strictEqual(told.status, 409, path)
        assert.deepInclude(told.headers, {
          "hx-retarget": "#main",
          "hx-reselect": "#main",
          "hx-reswap": "outerHTML"
        })
        const words = wordsOf(told)
        assert.match(words, /revoke it first.*\. live_certificates Nothing was changed\./)
        assert.include(words, "cannot be deleted while")
        assert.notInclude(words, "The contacts were changed.", "what was said before is not said again")
        assert.isBelow(told.text.indexOf("live_certificates"), told.text.indexOf("<h1"))
      }
    }))

  test("leaves the form in place if no script names the page, or if that page no longer exists", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "otto", "operator")
      const { orderId } = yield* pending
      const refused = `/ui/orders/${orderId}/revoke`
      assert.isTrue(isBeside(yield* send(panel, held, refused), 409, "order_not_issued"))
      const pages = [
        "/ui/orders/01890a5d-ac96-774b-bcce-b302099a8057",
        "/ui/operators/otto",
        "/ui/orders/export",
        "/ui/",
        "/ui/login"
      ]
      for (const page of pages) {
        const told = yield* panel.ask(refused, { method: "POST", body: form({}), headers: from(page), ...held })
        assert.strictEqual(told.status, 409, page)
        assert.strictEqual(told.headers["hx-retarget"], page === "/ui/" ? "#main" : "find .refusal", page)
      }
      const elsewhere = { "hx-request": "true", "hx-current-url": "https://evil.example//evil.example/" }
      const told = yield* panel.ask(refused, { method: "POST", body: form({}), headers: elsewhere, ...held })
      assert.strictEqual(told.headers["hx-retarget"], "find .refusal")
    }))

  test("is not assumed if the refusal has another reason", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "ann", "admin")
      const headers = from("/ui/account")
      const body = form({ password: "not the password", contact: "ann@example.org" })
      const told = yield* panel.ask("/ui/account/contact", { method: "POST", body, headers, ...held })
      assert.isTrue(isBeside(told, 403, "step_up_failed"))
      const taken = { name: "backup", role: "viewer", expiresInDays: "30", password }
      const mint = () => panel.ask("/ui/account/tokens", { method: "POST", body: form(taken), headers, ...held })
      assert.strictEqual((yield* mint()).status, 200)
      const again = yield* mint()
      assert.strictEqual(again.status, 409)
      assert.include(wordsOf(again), "The name backup is in use. name_taken")
      assert.match(again.text, /id="new-token" hx-preserve/, "what was typed stays")
    }))
})

describe.each(databases)("a refusal on $name", (backend) => {
  const { test } = usePanel(backend)

  test("of a link or a filter replaces the page, because there is no form", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vera", "viewer")
      const headers = { "hx-request": "true" }
      for (const [path, status] of [["/ui/orders/x", 404], ["/ui/operators", 403]] as const) {
        const told = yield* panel.ask(path, { ...held, headers })
        assert.strictEqual(told.status, status)
        assert.deepInclude(told.headers, { "hx-retarget": "#main", "hx-reswap": "innerHTML" })
        assert.include(told.text, "<h1>")
        assert.notInclude(told.text, "<html")
      }
    }))
})
