import { Effect } from "effect"
import { assert, describe } from "vitest"
import { AccessDenied } from "../../../src/domain/OperatorError.ts"
import { sqlite } from "../../support/Databases.ts"
import { made, password } from "../../support/Operators.ts"
import { form, panelOf, usePanel, wordsOf } from "../../support/Panel.ts"

/* A panel that is reached by another URL than that of `admin.base_url`, where nobody can sign in. */

describe("a panel at another URL", () => {
  const { config, test } = usePanel(sqlite)
  const panelUrl = `${config.admin.base_url}/ui/`

  test("says on the refused sign-in where the page came from, where the panel is, and links there", ({ ask }) =>
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

  test("leads from another name of loopback to the same page, and only those whom the policy lets in", ({ ask }) =>
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
