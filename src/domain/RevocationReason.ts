import { readWhole } from "./WholeNumber.ts"

/** The reasons that a revocation may state (RFC 5280 section 5.3.1). Code 7 is not used. */
export const revocationReasons = [
  { code: 0, name: "unspecified" },
  { code: 1, name: "keyCompromise" },
  { code: 2, name: "cACompromise" },
  { code: 3, name: "affiliationChanged" },
  { code: 4, name: "superseded" },
  { code: 5, name: "cessationOfOperation" },
  { code: 6, name: "certificateHold" },
  { code: 8, name: "removeFromCRL" },
  { code: 9, name: "privilegeWithdrawn" },
  { code: 10, name: "aACompromise" }
] as const

/** The reason code for a key that others may know. */
export const keyCompromise = 1

/** The reason code for a certificate whose CA has a key that others may know. */
export const caCompromise = 2

/** Returns whether a revocation may state this code. */
export const isAcceptedReason = (code: number): boolean => revocationReasons.some((one) => one.code === code)

/** Returns the code of a reason that is given by its number or its name. The name may be in upper or lower case. */
export const parseReason = (given: string | number): number | undefined => {
  const number = typeof given === "string" ? readWhole(given) : given
  const word = String(given).trim().toLowerCase()
  return revocationReasons.find(({ code, name }) => code === number || name.toLowerCase() === word)?.code
}

/** Returns the name of a reason. An unknown code is returned in digits. */
export const reasonName = (code: number): string =>
  revocationReasons.find((one) => one.code === code)?.name ?? String(code)

/** Returns a reason in readable form, such as "keyCompromise (1)". An unknown code is returned in digits. */
export const reasonShown = (code: number): string => {
  const name = revocationReasons.find((one) => one.code === code)?.name
  return name === undefined ? String(code) : `${name} (${code})`
}
