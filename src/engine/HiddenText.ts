/* Finds and replaces invisible characters in texts from outside that are shown, mailed, logged or printed. */

/**
 * Control characters, line and paragraph separators, marks that change the direction of writing, and all other
 * invisible characters. Such characters move or hide the text next to them, or control a terminal. The joiners U+200C
 * and U+200D are allowed, because words of some scripts need them.
 */
const hidden = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

// Matches texts that certainly have no hidden character. Nearly all texts match, and this check costs a quarter of a
// search with `hidden`.
const plain = /^[\x20-\x7e]*$/

/** Returns the first hidden character in the form `U+202E`. */
export const hiddenIn = (text: string): string | undefined => {
  const at = text.search(hidden)
  return at < 0 ? undefined : codePoint(text.slice(at))
}

const codePoint = (text: string): string =>
  `U+${(text.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`

/**
 * Replaces each hidden character of a text with the result of `replacement`, which gets the character and its code
 * point in the form `U+202E`.
 */
export const replaceHidden = (text: string, replacement: (character: string, code: string) => string): string =>
  plain.test(text) ? text : text.replaceAll(hidden, (character) => replacement(character, codePoint(character)))

const unit = (text: string, at: number): string => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`

/** Replaces hidden characters with JSON escapes, so that the text stays on one line. */
export const escapeHidden = (text: string): string =>
  replaceHidden(text, (character) => {
    const written = JSON.stringify(character).slice(1, -1)
    return written !== character ? written : Array.from(character.split(""), (_, at) => unit(character, at)).join("")
  })

/** Returns the text on one line. Each run of hidden characters and blanks becomes one blank. */
export const oneLine = (text: string): string => replaceHidden(text, () => " ").replaceAll(/\s+/g, " ").trim()
