import { encodeBase32 } from "../pki/Base32.ts"
import { isSame, sha256, sha256Octets } from "../pki/Digest.ts"

/* What a program signs in with: `acme_svc_<32 octets, base64url>_<checksum>` (docs/decisions/admin.md, "Tokens"). */

const prefix = "acme_svc_"
const form = /^(acme_svc_[A-Za-z0-9_-]{43})_([a-z2-7]{6})$/
const checksumSize = 6

const checksumOf = (body: string): string =>
  encodeBase32(sha256Octets(body).subarray(0, 4)).slice(0, checksumSize).toLowerCase()

/** The token of 43 characters of base64url that were drawn for it. */
export const printApiToken = (drawn: string): string => `${prefix}${drawn}_${checksumOf(`${prefix}${drawn}`)}`

/** What is stored of a token. */
export const apiTokenHash = (token: string): string => sha256(token)

/** Whether a text is a token by its shape and checksum. One that is not was never given out, and needs no look-up. */
export const isApiToken = (text: string): boolean => {
  const [, body = "", checksum = ""] = form.exec(text) ?? []
  return body !== "" && isSame(Buffer.from(checksumOf(body)), Buffer.from(checksum))
}

/** Days a token may live. */
export const tokenLife = { least: 1, most: 366 } as const

/** Characters of a token's name. */
export const longestTokenName = 64

/** Ranges of addresses a token may name. */
export const mostTokenAddresses = 32
