import { assert } from "vitest"

/* A text of an outsider that is as bad as possible, and what a page may make of it. */

/**
 * Markup that ends an attribute or an element, a character that turns the direction of the text beside it, and 10 000
 * characters.
 */
export const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)>\u202Egro.elpmaxe ${
  "long ".repeat(1990)
}`

/** Checks that a page has escaped, isolated and cut such a text, wherever it occurs. */
export const assertHarmless = (html: string) => {
  assert.notMatch(html, /<script(?![^>]*\ssrc=)|<img src=x|"'>/)
  assert.notInclude(html, "\u202E")
  assert.notInclude(html, "long ".repeat(500))
  assert.include(html, "⟨U+202E⟩", "the page shows the text")
}
