const form = /^[a-z0-9][a-z0-9._-]{0,63}$/
const ascii = /^[\x21-\x7e]*$/

/** What a name has to be, as the end of a sentence. */
export const usernameForm = "1 to 64 of a-z, 0-9, dot, underscore and hyphen, the first a letter or a digit"

/**
 * The name of an operator as it is stored, in lower case; `undefined` for what is none. A letter of another script that is
 * `k` or `s` in lower case names nobody.
 */
export const readUsername = (text: string): string | undefined => {
  const name = ascii.test(text) ? text.toLowerCase() : ""
  return form.test(name) ? name : undefined
}
