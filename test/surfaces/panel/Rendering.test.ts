import { it } from "@effect/vitest"
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe } from "vitest"
import { makeRendering } from "../../../src/surfaces/panel/Rendering.ts"
import { freshDirectory } from "../../support/Databases.ts"
import { panelFiles } from "../../support/Graph.ts"

/* Custom pages in place of the built-in ones. */

const builtIn = `${panelFiles.folder}/templates`

const withOwn = (files: { readonly [name: string]: string }) => {
  const folder = freshDirectory()
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return { folder, made: makeRendering(builtIn, folder) }
}

describe("a custom template", () => {
  it.effect("replaces the built-in template of the same name", () =>
    Effect.gen(function*() {
      const { folder, made } = withOwn({
        "workers.html": "{% import 'ui.html' as ui %}{{ ui.badge('good', word) }}",
        "other.html": "x"
      })
      const { render, unused } = yield* made
      assert.strictEqual(yield* render("workers", { word: "<here>" }), `<b class="good">&lt;here&gt;</b>`)
      assert.deepStrictEqual(unused, [`${folder}/other.html`])
    }))

  it.effect("marks the commands in a sentence of the service", () =>
    Effect.gen(function*() {
      const { made } = withOwn({ "workers.html": "{% import 'ui.html' as ui %}{{ ui.sentence(text) }}" })
      const { render } = yield* made
      const text = "`acme-svc order show <id>` and `worker list` show it."
      const marked = "<code>acme-svc order show &lt;id&gt;</code> and <code>worker list</code> show it."
      assert.strictEqual(yield* render("workers", { text }), marked)
    }))

  it.effect.each(
    [
      ["{{ rows }}\n{{ rows|nothing }}", 2, "the filter nothing is not known"],
      ["{% if rows is nothing %}{% endif %}", 1, "the test nothing is not known"],
      ["\n\n{{ nothing() }}", 3, "the function nothing is not known"],
      ["{% import 'ui.html' as ui %}\n{{ ui.nothing() }}", 2, "ui has no macro nothing"],
      ["{% include 'gone.html' %}", 1, "there is no template 'gone.html'"],
      ["{% if rows %}", 1, "syntax error: unexpected end of input, expected end of block"]
    ] as const
  )(
    "is refused before any page is requested, with its file, its line and the cause: %j",
    ([text, line, cause]) =>
      Effect.gen(function*() {
        const { folder, made } = withOwn({ "workers.html": text })
        const refused = yield* Effect.flip(Effect.scoped(made))
        assert.strictEqual(refused.message, `${folder}/workers.html:${line}: ${cause}`)
      })
  )
})
