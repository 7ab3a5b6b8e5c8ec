import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { pages } from "../../../tools/bench/PageReads.ts"
import { panelFiles } from "../../support/Graph.ts"
import { rows } from "../../support/PanelPages.ts"
import { patternOf, patternsOf } from "../../support/PanelRoutes.ts"

/* The test tables must contain every route and form of the panel, so that a new one is not forgotten. */

describe("the forms of the panel", () => {
  it("declare POST and their path, so that typed text never gets into a URL if the script is missing", () => {
    const folder = join(panelFiles.folder, "templates")
    const forms = readdirSync(folder).flatMap((
      name
    ) => [...readFileSync(join(folder, name), "utf8").matchAll(/<[^<>]*? hx-post="([^"]*)"/g)])
    assert.isAbove(forms.length, 7)
    for (const [tag, url] of forms) assert.include(tag, ` method="post" action="${url}"`)
  })
})

describe("the pages and fragments of the panel", () => {
  it("have a row in the table that the browser checks", () => {
    assert.deepStrictEqual([...new Set(rows.map(({ pattern }) => pattern))].toSorted(), patternsOf("GET"))
  })

  it("are all measured, except for fragments", () => {
    const reads = pages.readsOf({ accounts: 1000, orders: 1000, auditRows: 1000 }, 0)
    const measured = new Set(reads.map(({ path }) => patternOf(path.split("?")[0] ?? "")))
    // Pages for a session that lacks its second factor are not measured.
    const shown = rows.filter(({ from, kind }) => kind === "page" && from !== "half").map(({ pattern }) => pattern)
    assert.deepStrictEqual([...measured].toSorted(), [...new Set(shown)].toSorted())
  })
})
