import { assert } from "vitest"

/* The worst text that an outsider can send, and a check of how a page shows it. */

/**
 * Markup that ends an attribute or an element, a character that reverses the direction of the text next to it, and 10
 * 000 characters.
 */
export const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)>\u202Egro.elpmaxe ${
  "long ".repeat(1990)
}`

/** Checks that a page has escaped, isolated and shortened such a text, wherever it occurs. */
export const assertHarmless = (html: string) => {
  assert.notMatch(html, /<script(?![^>]*\ssrc=)|<img src=x|"'>/)
  assert.notInclude(html, "\u202E")
  assert.notInclude(html, "long ".repeat(500))
  assert.include(html, "⟨U+202E⟩", "the page shows the text")
}
