import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { escapeHidden, hiddenIn, oneLine, replaceHidden } from "../../src/engine/HiddenText.ts"
import { prop } from "../support/Property.ts"

describe("hidden characters", () => {
  it.each([
    ["U+0000", "\0"],
    ["U+000A", "\n"],
    ["U+000D", "\r"],
    ["U+0085", "\u0085"],
    ["U+00AD", "\u00ad"],
    ["U+061C", "\u061c"],
    ["U+200B", "\u200b"],
    ["U+200E", "\u200e"],
    ["U+2028", "\u2028"],
    ["U+202E", "\u202e"],
    ["U+2069", "\u2069"],
    ["U+FEFF", "\ufeff"],
    ["U+E0041", "\u{e0041}"],
    ["U+D800", "\ud800"]
  ])("include %s", (code, character) => {
    assert.strictEqual(hiddenIn(`a${character}b\n`), code)
    assert.strictEqual(replaceHidden(`a${character}b`, (_, named) => `<${named}>`), `a<${code}>b`)
    assert.strictEqual(JSON.parse(`"${escapeHidden(`a${character}b`)}"`), `a${character}b`)
    assert.match(escapeHidden(character), /^[\x20-\x7e]+$/)
    assert.strictEqual(oneLine(`${character} a ${character}${character} b${character}`), "a b")
  })

  it.each(["a b~", "é", "日本", "😀", "می\u200cخواهم", "👩\u200d💻", "\u00a0"])("are not found in %j", (text) => {
    assert.isUndefined(hiddenIn(text))
    assert.strictEqual(escapeHidden(text), text)
  })
})

prop(
  "an escaped text has no hidden character and is read back unchanged",
  [fc.string({ unit: "binary" })],
  ([text]) => {
    const written = escapeHidden(text.replaceAll(/["\\]/g, ""))
    return hiddenIn(written) === undefined && JSON.parse(`"${written}"`) === text.replaceAll(/["\\]/g, "")
  }
)
