/**
 * One character of a client's text, for a sentence. A character that is not plain printable ASCII is shown by its code
 * point.
 */
export const shownCharacter = (character: string): string => {
  const code = character.codePointAt(0) ?? 0
  if (code > 0x20 && code < 0x7f) return `the character ${character}`
  if (code === 0x20) return "a space"
  return `the character U+${code.toString(16).toUpperCase().padStart(4, "0")}`
}

/** No DNS name is longer, in octets, and no sentence needs more of a text that is not a name. */
const longestShown = 253

/**
 * A client's text that ought to be a name, for a sentence: nothing in it acts on a terminal or passes for words of the service.
 * What is no visible ASCII character is shown as `\u{…}`, and what is longer than any name is cut.
 */
export const shownName = (text: string): string => {
  const kept = text.length > longestShown ? text.slice(0, longestShown) : text
  const shown = kept.replaceAll(
    /[^\x21-\x7e]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`
  )
  return shown === "" ? "\"\"" : kept === text ? shown : `${shown}…`
}
