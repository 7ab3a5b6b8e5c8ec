import { encodeBase32 } from "../crypto/Base32.ts"

/*
 * A recovery code lets an operator in once without the authenticator (docs/contribute/decisions/admin.md, "Second
 * factor").
 */

const form = /^[A-Z2-7]{10}$/

/** The number of random octets for one code. Its ten characters contain fifty bits. */
export const recoveryCodeSize = 7

/** Returns the code that is made from random octets, in the form that is hashed. */
export const recoveryCodeFrom = (drawn: Uint8Array): string => encodeBase32(drawn).slice(0, 10)

/** Returns a code in the form that is shown: two halves. */
export const showRecoveryCode = (code: string): string => `${code.slice(0, 5)}-${code.slice(5)}`

/** Returns the code in a typed text, or undefined if the text is not a code. Case, spaces and hyphens do not matter. */
export const readRecoveryCode = (typed: string): string | undefined => {
  const code = typed.replaceAll(/[\s-]/g, "").toUpperCase()
  return form.test(code) ? code : undefined
}
