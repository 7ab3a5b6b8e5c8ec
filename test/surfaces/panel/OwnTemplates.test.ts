import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { freshDirectory, sqlite } from "../../support/Databases.ts"
import { eventsOf } from "../../support/Graph.ts"
import { entered, send, usePanel } from "../../support/Panel.ts"

/* Custom pages that compile but fail when they are requested. */

const folder = freshDirectory()
const own = (name: string, text: string) => writeFileSync(join(folder, `${name}.html`), text)

own("workers", "{% for a in range(90000) %}{% for b in range(90000) %}.{% endfor %}{% endfor %}")
own("notifications", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
own("orders", "{% extends layout %}\n{% block fragment %}<h1>Orders</h1>\n{{ list.total / nothing }}{% endblock %}")
own(
  "nonces",
  "{% extends layout %}{% block fragment %}<h1>Ours</h1>[{{ nothing.of.this }}]{{ ttlSeconds }}{% endblock %}"
)
own("worker", "replaces nothing")
own("minted", "{{ credential.kid|join(1, 2, 3) }}")

describe("a custom page", () => {
  const { config, records, test } = usePanel(sqlite, `[admin]\ntemplate_dir = ${JSON.stringify(folder)}\n`)
  const faults = (): ReadonlyArray<string> =>
    records.filter(({ event }) => event === "request_handler_panicked").map(({ fields }) =>
      String((fields as { readonly error: string }).error)
    )

  test("is replaced by an error page if it loops forever or fails", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "otto", "operator")
      const failing = [
        ["/ui/workers", /^workers\.html:1: engine ran out of fuel/],
        ["/ui/notifications", /^notifications\.html:\d+: /],
        ["/ui/orders", /^orders\.html:3: /]
      ] as const
      for (const [index, [path, fault]] of failing.entries()) {
        const told = yield* panel.ask(path, held)
        assert.strictEqual(told.status, 500, path)
        assert.include(told.text, "This page cannot be shown: its template failed. The log says where.")
        assert.match(faults()[index] ?? "", fault)
        assert.strictEqual((yield* panel.ask("/ui/jobs", held)).status, 200, "and the next page is shown")
      }
      assert.lengthOf(faults(), failing.length)
    }))

  test("replaces no page if its file name is wrong", () =>
    Effect.sync(() => {
      const told = records.filter(({ event }) => event === "admin_template_unused")
      assert.deepStrictEqual(told.map(({ fields }) => fields), [{ path: `${folder}/worker.html` }])
    }))

  test("is shown with nothing in place of values that do not exist", (panel) =>
    Effect.gen(function*() {
      const told = yield* panel.ask("/ui/nonces", yield* entered(panel, "vera", "viewer"))
      assert.strictEqual(told.status, 200)
      assert.include(told.text, `<h1>Ours</h1>[]${config.nonce.ttl_seconds}`)
      assert.notInclude(eventsOf(records), "request_handler_panicked")
    }))

  test("still says that a record was made if the page fails afterwards", (panel) =>
    Effect.gen(function*() {
      const held = yield* entered(panel, "otto", "operator")
      const told = yield* send(panel, held, "/ui/eab", { label: "Printers" })
      assert.strictEqual(told.status, 500)
      assert.include((yield* panel.ask("/ui/eab", held)).text, "Printers")
    }))
})
