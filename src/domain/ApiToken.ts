import { encodeBase32 } from "../crypto/Base32.ts"
import { isSame, sha256, sha256Octets } from "../crypto/Digest.ts"

/*
 * The token of a program: `acme_svc_<32 octets, base64url>_<checksum>` (docs/contribute/decisions/admin.md, "Tokens").
 */

const prefix = "acme_svc_"
const form = /^(acme_svc_[A-Za-z0-9_-]{43})_([a-z2-7]{6})$/
const checksumSize = 6

const checksumOf = (body: string): string =>
  encodeBase32(sha256Octets(body).subarray(0, 4)).slice(0, checksumSize).toLowerCase()

/** Returns the token that contains 43 random characters of base64url. */
export const printApiToken = (drawn: string): string => `${prefix}${drawn}_${checksumOf(`${prefix}${drawn}`)}`

/** Returns the stored form of a token. */
export const apiTokenHash = (token: string): string => sha256(token)

/**
 * Returns whether a text has the shape and the checksum of a token. Any other text was never issued, so it need not be
 * looked up.
 */
export const isApiToken = (text: string): boolean => {
  const [, body = "", checksum = ""] = form.exec(text) ?? []
  return body !== "" && isSame(Buffer.from(checksumOf(body)), Buffer.from(checksum))
}

/** The shortest and longest lifetime of a token, in days. */
export const tokenLife = { least: 1, most: 366 } as const

/** The highest number of characters in the name of a token. */
export const longestTokenName = 64

/** The highest number of address ranges in a token. */
export const mostTokenAddresses = 32
