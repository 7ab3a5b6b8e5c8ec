/*
 * Finds and replaces invisible characters in texts that others have chosen and that are shown, mailed, logged or
 * printed.
 */

/**
 * Controls, ends of lines and paragraphs, marks that turn the direction of writing, and all other characters without a
 * shape. They move or hide the text beside them, or make a terminal act. The joiners U+200C and U+200D are allowed,
 * because words of some scripts need them.
 */
const hidden = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

// Matches nearly every text, at a quarter of the cost.
const plain = /^[\x20-\x7e]*$/

/** The first hidden character, as `U+202E`. */
export const hiddenIn = (text: string): string | undefined => {
  const at = text.search(hidden)
  return at < 0 ? undefined : codePoint(text.slice(at))
}

const codePoint = (text: string): string =>
  `U+${(text.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`

/** The text with each hidden character replaced by what `replacement` says of it and of its code point, as `U+202E`. */
export const replaceHidden = (text: string, replacement: (character: string, code: string) => string): string =>
  plain.test(text) ? text : text.replaceAll(hidden, (character) => replacement(character, codePoint(character)))

const unit = (text: string, at: number): string => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`

/** The text with hidden characters as JSON escapes them, so that it stays on its line. */
export const escapeHidden = (text: string): string =>
  replaceHidden(text, (character) => {
    const written = JSON.stringify(character).slice(1, -1)
    return written !== character ? written : Array.from(character.split(""), (_, at) => unit(character, at)).join("")
  })

/** The text on one line, with one blank in place of each run of hidden characters and blanks. */
export const oneLine = (text: string): string => replaceHidden(text, () => " ").replaceAll(/\s+/g, " ").trim()
