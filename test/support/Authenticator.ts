import { totpCode } from "../../src/crypto/Totp.ts"

/* An authenticator app, which programs other than tests also use. */

/** Returns the octets of a secret in base32. */
export const secretOf = (base32: string): Uint8Array => {
  const bits = [...base32].map((letter) =>
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")
  ).join("")
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((octet) => Number.parseInt(octet, 2)))
}

/** Returns the code that an authenticator shows now. */
export const totpNow = (base32: string): string => totpCode(secretOf(base32), Math.floor(Date.now() / 1000))
