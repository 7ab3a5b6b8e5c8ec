import { Effect } from "effect"
import { assert, describe } from "vitest"
import * as workers from "../../../src/engine/queue/Workers.ts"
import { databases } from "../../support/Databases.ts"
import { startsAt } from "../../support/Operators.ts"
import { entered, usePanel, wordsOf } from "../../support/Panel.ts"

/* The page of processes (docs/contribute/decisions/panel.md, "Pages"). */

describe.each(databases)("the page of workers on $name", (backend) => {
  const { test } = usePanel(backend)
  const present = (owner: string, roles: string, version: string, now = startsAt) =>
    workers.present({ owner, roles, version, startedAt: startsAt - 100, now })

  test("says that issuance waits while there is no worker", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const none = yield* panel.ask("/ui/workers", { cookie: held.cookie })
      assert.strictEqual(none.status, 200)
      assert.include(wordsOf(none), "No process with the worker role is running; issuance waits.")
      assert.include(wordsOf(none), "acme-svc serve --role worker")
      yield* present("a:1:x", "acme,admin", "0.1.0")
      yield* present("b:1:x", "worker", "0.1.0", startsAt - 31)
      const stale = yield* panel.ask("/ui/workers", { cookie: held.cookie })
      assert.include(wordsOf(stale), "issuance waits")
      assert.include(wordsOf(stale), "b:1:x stale worker 0.1.0")
      yield* present("c:1:x", "acme,worker", "0.1.0")
      const live = yield* panel.ask("/ui/workers", { cookie: held.cookie })
      assert.notInclude(wordsOf(live), "issuance waits")
      assert.include(wordsOf(live), "c:1:x present acme, worker 0.1.0")
      assert.notInclude(wordsOf(live), "different versions")
    }))

  test("names the background work that keeps failing", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const row = { owner: "a:1:x", roles: "acme", version: "0.1.0", startedAt: 1, now: startsAt }
      yield* workers.present({ ...row, failing: "job_periodic tls_expiry" })
      const shown = yield* panel.ask("/ui/workers", { cookie: held.cookie })
      assert.include(wordsOf(shown), "a:1:x keeps failing job_periodic, tls_expiry acme 0.1.0")
    }))

  test("says that running processes have different versions", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* present("a:1:x", "worker", "0.1.0")
      yield* present("b:1:x", "acme", "0.0.9", startsAt - 31)
      assert.notInclude(wordsOf(yield* panel.ask("/ui/workers", { cookie: held.cookie })), "different versions")
      yield* present("b:1:x", "acme", "0.0.9")
      assert.include(
        wordsOf(yield* panel.ask("/ui/workers", { cookie: held.cookie })),
        "Processes of different versions are running: 0.0.9, 0.1.0."
      )
    }))

  test("escapes the texts that a process stored about itself", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      yield* present("<img src=x>\"'\u202e\u{e0041}a", "worker", "<b>0</b>")
      const { text } = yield* panel.ask("/ui/workers", { cookie: held.cookie })
      assert.notMatch(text, /<img src=x|<b>0|\u202e/)
      assert.include(text, "⟨U+202E⟩⟨U+E0041⟩")
    }))

  test("is sent as a fragment if only the fragment is requested", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "vic", "viewer")
      const fragment = yield* panel.ask("/ui/workers", { cookie: held.cookie, headers: { "hx-request": "true" } })
      assert.notInclude(fragment.text, "<html")
      assert.include(fragment.text, "<h1>Workers</h1>")
      assert.strictEqual((yield* panel.ask("/ui/workers")).status, 303)
    }))
})
