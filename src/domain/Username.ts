const form = /^[a-z0-9][a-z0-9._-]{0,63}$/
const ascii = /^[\x21-\x7e]*$/

/** The rule for a name, as the end of a sentence. */
export const usernameForm = "1 to 64 of a-z, 0-9, dot, underscore and hyphen, the first a letter or a digit"

/**
 * Returns the name of an operator in its stored form: in lower case, without blanks around it. Returns undefined if the
 * text is not a name. A letter of another script is refused even if its lower case is `k` or `s`.
 */
export const readUsername = (text: string): string | undefined => {
  const given = text.trim()
  const name = ascii.test(given) ? given.toLowerCase() : ""
  return form.test(name) ? name : undefined
}
