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
