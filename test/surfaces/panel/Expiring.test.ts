import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe } from "vitest"
import type { Caller } from "../../../src/operations/Caller.ts"
import { databases } from "../../support/Databases.ts"
import { callerAt, handmadeChain, orderOf, profileOf, sql } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, usePanel } from "../../support/Panel.ts"

/* The page of what expires (docs/contribute/decisions/panel.md). */

const fragment = { headers: { "hx-request": "true" } }
const plain = (html: string) => html.replaceAll("&#x2f;", "/").replaceAll("&amp;", "&")

describe.each(databases)("the page of expiring certificates on $name", (backend) => {
  const { config, test } = usePanel(backend)

  const ending = Effect.fnUntraced(function*(caller: Caller, days: number, name: string) {
    const { id } = yield* orderOf(caller, name)
    const literal = backend.dialect === "sqlite" ? `X'${id.replaceAll("-", "")}'` : `'${id}'`
    yield* sql(
      `UPDATE orders SET status = 'valid', certificate = '${handmadeChain}', cert_serial = '0a',
       cert_not_after = ${startsAt + days * 86_400 + 60} WHERE id = ${literal}`
    )
    return id
  })

  test("says that no certificate expires in the period", ({ ask }) =>
    Effect.gen(function*() {
      const told = yield* ask("/ui/expiring", yield* entered({ ask }, "ann", "viewer"))
      assert.include(told.text, "Nothing expires within 30 days.")
      const [, offered] = /<select name="superseded">(.*?)<\/select>/s.exec(told.text) ?? []
      assert.deepStrictEqual(offered?.replaceAll(/<[^>]*>/g, " ").trim().split(/\s+/), ["shown", "hide"])
      assert.include(plain(told.text), "href=\"/ui/expiring?days=90\">Look at 90 days")
      const [, periods = ""] = /<p class="tabs periods">(.*?)<\/p>/s.exec(plain(told.text)) ?? []
      assert.deepStrictEqual([...periods.matchAll(/days=(\d+)"/g)].map(([, days]) => days), ["7", "30", "90", "365"])
    }))

  test("lists certificates in the order in which they expire", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const caller = yield* callerAt(profileOf(config))
      yield* ending(caller, 20, "later.example")
      yield* ending(caller, 5, "sooner.example")
      yield* ending(caller, 3, "renewed.example")
      const successor = yield* ending(caller, 80, "renewed.example")
      const told = yield* ask("/ui/expiring", held)
      const at = ["renewed.example", "sooner.example", "later.example"].map((name) => told.text.indexOf(name))
      assert.deepStrictEqual(at, at.toSorted((one, other) => one - other))
      assert.include(plain(told.text), `href="/ui/orders/${successor}"`)
      assert.include(told.text, "with all its names")
      assert.include(told.text, "1–3 of 3")
      const hidden = yield* ask("/ui/expiring?superseded=hide", { ...held, ...fragment })
      assert.include(hidden.text, "1 replaced certificate of this window is hidden.")
      assert.notInclude(hidden.text, "renewed.example")
      assert.include(hidden.text, "1–2 of 2")
      assert.notInclude(hidden.text, "<html")
      const near = yield* ask("/ui/expiring?days=4&superseded=hide", held)
      assert.include(near.text, "Nothing else expires within 4 days.")
      const file = yield* ask("/ui/expiring/export?superseded=hide&days=10&format=json", held)
      assert.strictEqual(file.json.items.length, 1)
      assert.include((yield* ask("/ui/expiring?profile=other", held)).text, "within 30 days at this profile")
    }))

  test("has as many rows as the overview counts", ({ ask }) =>
    Effect.gen(function*() {
      const caller = yield* callerAt(profileOf(config))
      yield* ending(caller, 30, "sooner.example")
      yield* ending(caller, 28, "renewed.example")
      yield* ending(caller, 80, "renewed.example")
      yield* TestClock.adjust("25 days")
      const held = yield* entered({ ask }, "ann", "viewer")
      const first = plain((yield* ask("/ui/", held)).text)
      assert.include(first, "1 certificate expires within 7 days, and no client has renewed it")
      const [, url = ""] = /<a class="button" href="(\/ui\/expiring[^"]*)">/.exec(first) ?? []
      assert.include((yield* ask(url, held)).text, "1–1 of 1")
    }))

  test("keeps the filters on the second page", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      const caller = yield* callerAt(profileOf(config))
      for (let made = 0; made < 51; made++) yield* ending(caller, 1 + made / 10, `host-${made}.example`)
      const told = yield* ask("/ui/expiring?profile=default&days=40", held)
      assert.include(plain(told.text), "href=\"/ui/expiring?profile=default&days=40&page=2\"")
      assert.include((yield* ask("/ui/expiring?profile=default&days=40&page=2", held)).text, "host-50.example")
    }))

  test("accepts a period beyond the limits, and refuses an invalid one", ({ ask }) =>
    Effect.gen(function*() {
      const held = yield* entered({ ask }, "ann", "viewer")
      for (const bad of ["days=1.5", "days=soon", "days=%00", "superseded=x"]) {
        assert.strictEqual((yield* ask(`/ui/expiring?${bad}`, held)).status, 400, bad)
      }
      for (const wide of ["days=0", "days=-1", `days=1${"0".repeat(20)}`, "days=%20", "page=-1"]) {
        assert.strictEqual((yield* ask(`/ui/expiring?${wide}`, held)).status, 200, wide)
      }
    }))
})
