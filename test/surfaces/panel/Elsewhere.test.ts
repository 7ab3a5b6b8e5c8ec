import { Effect } from "effect"
import { assert, describe } from "vitest"
import { AccessDenied } from "../../../src/domain/OperatorError.ts"
import { sqlite } from "../../support/Databases.ts"
import { made, password } from "../../support/Operators.ts"
import { form, panelOf, usePanel, wordsOf } from "../../support/Panel.ts"

/* A panel whose URL in the browser is not `admin.base_url`. Nobody can sign in there. */

describe("a panel at another URL", () => {
  const { config, test } = usePanel(sqlite)
  const panelUrl = `${config.admin.base_url}/ui/`

  test("answers a refused sign-in with a link to the URL of the panel", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("olga", "admin")
      const body = form({ username: "olga", password })
      const told = yield* ask("/ui/login", { method: "POST", body, headers: { origin: "https://localhost:3001" } })
      assert.strictEqual(told.status, 403)
      assert.include(
        wordsOf(told),
        `This page came from https://localhost:3001; the panel is at ${panelUrl}, as admin.base_url says.`
      )
      assert.include(told.text.replaceAll("&#x2f;", "/"), `<a href="${panelUrl}">Go to the panel</a>`)
    }))

  test("answers a link from another site with a page that reloads itself", ({ ask }) =>
    Effect.gen(function*() {
      const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" }
      for (const target of ["/ui/", `/ui/orders?status=valid&q="><b`]) {
        const told = yield* ask(target, { headers: link })
        assert.strictEqual(told.status, 200)
        const again = target.replaceAll("&", "&amp;").replaceAll("\"", "&quot;").replaceAll(">", "&gt;").replaceAll(
          "<",
          "&lt;"
        )
        assert.include(told.text, `<meta http-equiv="refresh" content="0; url=${again}">`)
        assert.isUndefined(told.headers["set-cookie"])
      }
      const image = yield* ask("/ui/", { headers: { ...link, "sec-fetch-mode": "no-cors" } })
      assert.strictEqual(image.status, 403)
      const sent = yield* ask("/ui/login", { method: "POST", body: form({ username: "a", password }), headers: link })
      assert.strictEqual(sent.status, 403)
      const { ask: askGuarded } = yield* panelOf(config, () => Effect.fail(new AccessDenied({})))
      assert.strictEqual((yield* askGuarded("/ui/", { headers: link })).status, 403)
    }))

  test("redirects permitted clients from another name of loopback to the same page", ({ ask }) =>
    Effect.gen(function*() {
      assert.strictEqual(config.admin.base_url, "http://localhost:3001")
      const headers = { host: "127.0.0.1:3001" }
      for (const target of ["/", "/ui/", "/ui/login?next=%2Fui%2Forders"]) {
        const { headers: { location }, status } = yield* ask(target, { headers })
        assert.deepStrictEqual([status, location], [307, `http://localhost:3001${target}`])
      }
      const denied = () => Effect.fail(new AccessDenied({}))
      const { ask: askGuarded } = yield* panelOf(config, denied)
      assert.strictEqual((yield* askGuarded("/ui/", { headers })).status, 403)
    }))
})
