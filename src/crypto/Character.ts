/**
 * Returns a character of a client's text, as it is shown within a sentence. A character that is not printable ASCII is
 * shown as its code point.
 */
export const shownCharacter = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code > 0x20 && code < 0x7f) return `the character ${character}`
  if (code === 0x20) return "a space"
  return `the character U+${code.toString(16).toUpperCase().padStart(4, "0")}`
}

/** The highest number of octets in a DNS name. Longer texts are cut to this length. */
const longestShown = 253

/**
 * Returns a client's text, which should be a name, in a form that is safe within a sentence. Nothing in the result can
 * control a terminal or pass for words of the service. A character that is not visible ASCII is shown as `\u{…}`, and a
 * text that is longer than any name is cut.
 */
export const shownName = (text: string): string => {
  const kept = text.length > longestShown ? text.slice(0, longestShown) : text
  const shown = kept.replaceAll(
    /[^\x21-\x7e]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`
  )
  return shown === "" ? "\"\"" : kept === text ? shown : `${shown}…`
}
