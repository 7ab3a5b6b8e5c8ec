import { Effect } from "effect"
import { assert, describe } from "vitest"
import { sqlite } from "../../support/Databases.ts"
import { entered, usePanel, wordsOf } from "../../support/Panel.ts"

/* The page of the configuration in force. */

describe("the page of the configuration", () => {
  const { test } = usePanel(
    sqlite,
    `[notify]
enabled = ["webhook"]
webhook_enabled = ["chat"]
[notify.webhook.chat]
url = "https://chat.example:8443/SECRETPATH?token=SECRETQUERY"
events = ["account_deactivated", "certificate_issued"]
signing_key = "whsec_U0VDUkVULVNFQ1JFVC1TRUNSRVQtU0VDUkVU"
[notify.webhook.chat.headers]
authorization = "Bearer SECRETHEADER"
[proxy]\nhttp_url = "http://me:hunter2@proxy.example:3128"\n[meta]\nwebsite = "https://a.example/?a=1&b=2"\n`
  )

  test("shows each key with its value, but only whether a secret is set", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const page = yield* panel.ask("/ui/configuration", held)
      const words = wordsOf(page)
      assert.strictEqual(page.status, 200)
      assert.include(words, "[nonce] ttl_seconds 300 ")
      assert.include(words, "[proxy] http_url set ")
      assert.include(words, " https_url not set ")
      assert.notInclude(page.text, "hunter2")
      assert.include(words, " webhook.chat.url chat.example:8443 ")
      assert.include(words, " webhook.chat.signing_key set ")
      assert.include(words, " webhook.chat.headers.authorization set ")
      assert.notMatch(page.text, /SECRET|whsec/)
      assert.include(page.text, "?a=1&amp;b=2")
      assert.include(words, " account_deactivated, certificate_issued ")
      assert.notInclude(words, " undefined ")
      assert.include(page.text, "<tr><td>template_dir<td><td>", "a text that is blank, and no secret")
      assert.include(page.text, "<h1>Configuration</h1>")
      assert.match(page.text, /<title>Configuration\b(?! of)/)
      assert.include(words, " service default other ")
      assert.include(page.text, "aria-current=\"true\"><bdi>service</bdi>")
      assert.include(words, "Search this page")
      // The stylesheet says what an empty cell stands for.
      assert.include(page.text, "<tr><td>ttl_seconds<td>300<td></tbody>")
      assert.notInclude(words, "profiles.default")
    }))

  test("shows the configuration of a profile with the inherited values", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const page = yield* panel.ask("/ui/configuration?profile=other", held)
      const words = wordsOf(page)
      assert.match(page.text, /<title>Configuration of other\b/)
      assert.include(page.text, "aria-current=\"true\"><bdi>other</bdi>")
      assert.include(words, "[profiles.other.challenge] enabled http-01 bypass false ")
      assert.notInclude(words, "[nonce]")
      assert.include(words, "[profiles.other] enabled true ")
      for (const blank of ["", "?profile=", "?profile=+"]) {
        assert.include(wordsOf(yield* panel.ask(`/ui/configuration${blank}`, held)), "[nonce]", blank)
      }
      const none = yield* panel.ask("/ui/configuration?profile=%3Cb%3Enobody", held)
      assert.strictEqual(none.status, 404)
      assert.notInclude(none.text, "<b>nobody")
    }))

  test("is sent as a fragment if only the fragment is requested", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const { text } = yield* panel.ask("/ui/configuration", { ...held, headers: { "hx-request": "true" } })
      assert.notInclude(text, "<html")
      assert.include(text, "<h1>Configuration</h1>")
    }))
})
