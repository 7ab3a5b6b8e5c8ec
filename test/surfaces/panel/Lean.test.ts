import { assert, describe, it } from "vitest"
import { lean } from "../../../src/surfaces/panel/PanelLists.ts"

/* Tests what is left of a template that was shortened for compilation. */

describe("a lean template", () => {
  it("has no indentation and no optional end tag, and no blanks between cells", () => {
    const table = "<table>\n  <tr>\n    <td>{{ a }}</td>\n    <td></td>\n  </tr>\n</table>\n<ul>\n  <li>b</li>\n</ul>\n"
    assert.strictEqual(
      lean(table),
      "<table>{#\n#}<tr>{#\n#}<td>{{ a }}{#\n#}<td>{#\n#}{#\n#}</table>\n<ul>\n<li>b\n</ul>\n"
    )
  })

  it("keeps its line numbers, so that an error is reported with the right one", () => {
    const template = "<tr>\n  <td>\n    {{ a|nothing }}\n  </td>\n</tr>\n"
    const lineOf = (text: string) => text.slice(0, text.indexOf("nothing")).split("\n").length
    assert.strictEqual(lineOf(lean(template)), lineOf(template))
  })

  it("keeps the spaces between words and the other end tags", () => {
    const text = "<p>a <b>b</b>\n<i>c</i></p>\n"
    assert.strictEqual(lean(text), text)
  })
})
