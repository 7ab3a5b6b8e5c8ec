import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as nonces from "../../../src/store/NonceRows.ts"
import { databases } from "../../support/Databases.ts"
import { count } from "../../support/Graph.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, isBeside, send, usePanel, wordsOf } from "../../support/Panel.ts"

/* The page of nonces. */

describe.each(databases)("the page of nonces on $name", (backend) => {
  const { test } = usePanel(backend)

  test("offers a sweep of nonces to operators only", (panel) =>
    Effect.gen(function*() {
      yield* nonces.insert(["a", "b"], startsAt * 1000)
      const viewer = yield* entered(panel, "vic", "viewer")
      const seen = yield* panel.ask("/ui/nonces", viewer)
      assert.include(wordsOf(seen), "Nonces 2 Each can be used for 300 seconds")
      assert.notInclude(seen.text, "hx-post=\"/ui/nonces")
      assert.isTrue(isBeside(yield* send(panel, viewer, "/ui/nonces/sweep"), 403, "insufficient_role"))
      for (const role of ["operator", "admin"] as const) {
        const held = yield* entered(panel, role, role)
        assert.include(
          (yield* panel.ask("/ui/nonces", held)).text.replaceAll("&#x2f;", "/"),
          "hx-post=\"/ui/nonces/sweep\""
        )
      }
    }))

  test("sweeps nonces that are older than a given age", (panel) =>
    Effect.gen(function*() {
      yield* nonces.insert(["a", "b"], (startsAt - 61) * 1000)
      yield* nonces.insert(["c"], startsAt * 1000)
      const held = yield* entered(panel, "otto", "operator")
      const swept = yield* send(panel, held, "/ui/nonces/sweep", { ttlSeconds: "60" })
      assert.strictEqual(swept.headers["hx-redirect"], "/ui/nonces?done=swept&removed=2")
      assert.include(wordsOf(yield* panel.ask("/ui/nonces?done=swept&removed=2", held)), "2 nonces deleted.")
      assert.strictEqual(yield* count("SELECT count(*) FROM nonces"), 1)
      const blank = yield* send(panel, held, "/ui/nonces/sweep", { ttlSeconds: "" })
      assert.strictEqual(blank.headers["hx-redirect"], "/ui/nonces?done=swept&removed=0")
      assert.strictEqual(yield* count("SELECT count(*) FROM nonces"), 1)
    }))

  test("refuses an invalid age with a message beside the form", (panel) =>
    Effect.gen(function*() {
      yield* nonces.insert(["a"], (startsAt - 1000) * 1000)
      const held = yield* entered(panel, "otto", "operator")
      for (const ttlSeconds of ["-1", "soon", "1.5", "9999999999"]) {
        assert.isTrue(isBeside(yield* send(panel, held, "/ui/nonces/sweep", { ttlSeconds }), 400, "bad_request"))
      }
      const bare = { cookie: held.cookie, csrf: "" }
      assert.isTrue(isBeside(yield* send(panel, bare, "/ui/nonces/sweep"), 403, "csrf_failed"))
      assert.strictEqual(yield* count("SELECT count(*) FROM nonces"), 1)
      const odd = yield* panel.ask("/ui/nonces?done=swept&removed=<b>", held)
      assert.notInclude(odd.text, "<b>&")
      for (const removed of ["x2", "2x", "1e3"]) {
        assert.include(
          wordsOf(yield* panel.ask(`/ui/nonces?done=swept&removed=${removed}`, held)),
          " 0 nonces deleted."
        )
      }
    }))
})
