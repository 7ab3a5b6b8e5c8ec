import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as eab from "../../../src/operations/operator/Eab.ts"
import * as audit from "../../../src/store/AuditRows.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, handmadeChain, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { assertHarmless, hostile } from "../../support/Hostile.ts"
import { made } from "../../support/Operators.ts"
import { entered, usePanel } from "../../support/Panel.ts"

/* The search box (docs/contribute/decisions/admin.md, "Names and searches"). */

describe.each(databases)("the search box on $name", (backend) => {
  const { config, test } = usePanel(backend)

  test("says what can be searched for, with an example of each, when the box is empty", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (const target of ["/ui/search", "/ui/search?q=", "/ui/search?q=+"]) {
        const told = yield* ask(target, held)
        assert.strictEqual(told.status, 200)
        for (const part of ["An id", "A serial number", "A name", "www.example.org"]) assert.include(told.text, part)
        assert.notInclude(told.text, "An operator")
      }
      const admin = yield* entered({ ask }, "anna", "admin")
      assert.include((yield* ask("/ui/search", admin)).text, "An operator")
    }))

  test("opens the only record that an id or a serial number can mean", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const caller = yield* callerAt(profileOf(config))
      const { id } = yield* orderOf(caller, "a.example")
      yield* sql(`UPDATE orders SET status = 'valid', certificate = '${handmadeChain}', cert_serial = '0badcafe'`)
      const { credential: { kid } } = yield* eab.create({ kind: "cli", id: "x" }, { label: "a", profile: undefined })
      for (
        const [query, page] of [
          [id.toUpperCase(), `/ui/orders/${id}`],
          ["0b:ad:ca:fe", `/ui/orders/${id}`],
          [caller.accountId, `/ui/accounts/${caller.accountId}`],
          [kid, `/ui/eab/${kid}`]
        ] as const
      ) {
        const told = yield* ask(`/ui/search?q=${encodeURIComponent(query)}`, held)
        assert.strictEqual(told.status, 303, query)
        assert.strictEqual(told.headers["location"], page)
      }
      const requestId = "21111111-1111-1111-1111-111111111111"
      yield* audit.insert({ event: "eab_created", actorKind: "cli", requestId, detail: { kid: "x" } })
      yield* audit.insert({ event: "eab_revoked", actorKind: "cli", requestId, detail: { kid: "x" } })
      const several = yield* ask(`/ui/search?q=${requestId}`, held)
      assert.strictEqual(several.status, 200)
      assert.include(several.text, "Audit rows of a request")
    }))

  test("groups the records that a name finds, and shows operators to admins only", ({ ask }) =>
    Effect.gen(function*() {
      yield* made("shop-olga", "viewer")
      const { id } = yield* orderOf(yield* callerAt(profileOf(config)), "shop.example")
      const viewer = yield* ask("/ui/search?q=shop", yield* entered({ ask }, "ann", "viewer"))
      assert.strictEqual(viewer.status, 200, "one order is no exact hit of a name")
      assert.include(viewer.text.replaceAll("&#x2f;", "/"), `/ui/orders/${id}`)
      assert.include(viewer.text, "<h2>Orders</h2>")
      assert.notInclude(viewer.text, "shop-olga")
      const admin = yield* ask("/ui/search?q=shop", yield* entered({ ask }, "anna", "admin"))
      assert.include(admin.text, "<h2>Operators</h2>")
      assert.include(admin.text, "shop-olga")
      assert.notInclude(admin.text, "<h2>Accounts</h2>", "of which nothing was found")
    }))

  test("links to all orders with a name that contains the text", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "anna", "admin")
      for (const name of ["shy", "shopper"]) yield* made(name, "viewer")
      const names = ["default", "other"] as const
      for (const name of names) yield* orderOf(yield* callerAt(profileOf(config, name)), "shop.example", "uk")
      yield* sql(`UPDATE orders SET status = 'valid', certificate = '${handmadeChain}', cert_serial = '0badcafe'`)
      const offers = Effect.fnUntraced(function*(query: string) {
        const { status, text } = yield* ask(`/ui/search?q=${query}`, held)
        assert.strictEqual(status, 200, query)
        return text.replaceAll("&#x2f;", "/").includes(`href="/ui/orders?identifierContains=${query}"`)
      })
      const asked = ["sho", "shop", "uk", "shy", "0badcafe"]
      assert.deepStrictEqual(yield* Effect.forEach(asked, offers), [true, true, true, false, false])
    }))

  test("says that nothing is found, where contacts are searched, and that a text is too long", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (const query of ["nowhere.example", "01890a5d-ac96-774b-bcce-b302099a8057", "0badcafe"]) {
        const { status, text } = yield* ask(`/ui/search?q=${query}`, held)
        assert.strictEqual(status, 200, query)
        assert.include(text, "Nothing was found.", query)
      }
      assert.include(
        (yield* ask("/ui/search?q=a@example.org", held)).text,
        "Contacts are searched in every part, among"
      )
      assert.strictEqual((yield* ask(`/ui/search?q=${"a".repeat(254)}`, held)).status, 400)
      assert.strictEqual((yield* ask("/ui/search?q=a%00b", held)).status, 400)
    }))

  test("shows the only result, and does not open it, while somebody types", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const { accountId } = yield* callerAt(profileOf(config))
      const told = yield* ask(`/ui/search?q=${accountId}&typing=1`, held)
      assert.strictEqual(told.status, 200)
      assert.include(told.text.replaceAll("&#x2f;", "/"), `<a href="/ui/accounts/${accountId}">`)
    }))

  test("escapes the search text", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      assertHarmless((yield* ask(`/ui/search?q=${encodeURIComponent(hostile.slice(0, 250))}`, held)).text)
    }))
})
