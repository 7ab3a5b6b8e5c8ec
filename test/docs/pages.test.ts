import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { everyWord } from "../../src/operations/operator/Catalogue.ts"
import { documents, text } from "../support/Documents.ts"
import { nameOf, rows } from "../support/PanelPages.ts"

/* The map of the documents, and the references that it names. */

const map = "docs/README.md"

/** Returns the documents to which a document links. */
const linkedFrom = (document: string): ReadonlyArray<string> =>
  [...text(document).matchAll(/\]\(([^)#\s]+\.md)/g)].map(([, target = ""]) => join(dirname(document), target))

const listed = linkedFrom(map)

describe("docs/README.md", () => {
  const pages = documents.filter((document) => document.startsWith("docs/") && document !== map)

  it.each(pages)("lists %s, or the list of its folder", (page) => {
    const list = join(dirname(page), "README.md")
    if (listed.includes(page)) return
    assert.include(listed, list)
    assert.include(linkedFrom(list), page)
  })

  it("names each page only once in its lists", () => {
    const items = [...text(map).matchAll(/^- .*(?:\n {2}.*)*/gm)].flatMap(([item]) =>
      [...item.matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target)
    )
    assert.strictEqual(new Set(items).size, items.length)
  })
})

describe("docs/contribute/gallery.md", () => {
  it("shows every page of the panel, with a line of its table", () => {
    const gallery = text("docs/contribute/gallery.md")
    for (const row of rows.filter(({ kind }) => kind === "page")) {
      assert.include(gallery, `| \`${nameOf(row)}\` |`)
      assert.include(gallery, `### \`${nameOf(row)}\`\n\n![`)
    }
  })
})

describe("the references", () => {
  const words = everyWord().map(({ name, pages }) => ({ name, page: pages.at(-1)?.replace(/#.*/, "") ?? "" }))

  it("have a line for each event, error, key and metric that explain knows", () => {
    const missing = words.filter(({ name, page }) => !text(page).replaceAll("\\<", "<").includes(name))
    assert.deepStrictEqual(missing, [])
  })
})
