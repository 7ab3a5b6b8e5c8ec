import { encodeBase32 } from "../pki/Base32.ts"

/* What lets an operator in once without the authenticator (docs/decisions/admin.md, "Second factor"). */

const form = /^[A-Z2-7]{10}$/

/** Octets a code is made of: the ten characters hold fifty bits. */
export const recoveryCodeSize = 7

/** The code of drawn octets, as it is hashed. */
export const recoveryCodeFrom = (drawn: Uint8Array): string => encodeBase32(drawn).slice(0, 10)

/** How a code is shown: in two halves. */
export const showRecoveryCode = (code: string): string => `${code.slice(0, 5)}-${code.slice(5)}`

/** The code somebody typed, whatever the case, spaces and hyphens; `undefined` for what is none. */
export const readRecoveryCode = (typed: string): string | undefined => {
  const code = typed.replaceAll(/[\s-]/g, "").toUpperCase()
  return form.test(code) ? code : undefined
}
