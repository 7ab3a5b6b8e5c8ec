import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { createPublicKey } from "node:crypto"
import { decodeBase64url } from "../Base64url.ts"
import { sha256Octets } from "../Digest.ts"
import { BadPublicKey } from "./Refused.ts"

/** A public key that verifies signed requests. */
export interface AccountKey {
  readonly algorithm: "ES256" | "RS256"
  readonly key: KeyObject
  /** DER SubjectPublicKeyInfo, as `accounts.pubkey` holds it. */
  readonly spki: Buffer
  /** base64url SHA-256 of the canonical JWK (RFC 7638). */
  readonly thumbprint: string
}

const refuse = (detail: string) => Result.fail(new BadPublicKey({ detail }))

const thumbprintOf = (canonical: string): string => sha256Octets(canonical).toString("base64url")

// AlgorithmIdentifier of a P-256 key and the start of its BIT STRING; the 64 coordinate octets follow.
const p256Prefix = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d03010703420004", "hex")
const coordinateSize = 32

const importEc = (jwk: { readonly [member: string]: unknown }): Result.Result<AccountKey, BadPublicKey> => {
  const { crv, x, y } = jwk
  if (crv !== "P-256") return refuse("An EC key must be on curve P-256.")
  const [left, right] = [x, y].map((member) => typeof member === "string" ? decodeBase64url(member) : undefined)
  if (left?.length !== coordinateSize || right?.length !== coordinateSize) {
    return refuse("EC coordinates must be base64url of exactly 32 octets.")
  }
  try {
    const key = createPublicKey({ key: { kty: "EC", crv, x: String(x), y: String(y) }, format: "jwk" })
    const thumbprint = thumbprintOf(`{"crv":"P-256","kty":"EC","x":"${String(x)}","y":"${String(y)}"}`)
    return Result.succeed({ algorithm: "ES256", key, spki: Buffer.concat([p256Prefix, left, right]), thumbprint })
  } catch {
    return refuse("The EC coordinates are not a point of curve P-256.")
  }
}

/**
 * The bound of an RSA exponent. A verification costs as many multiplications as the exponent has bits, on the event
 * loop, and any client can ask for it.
 */
export const maxExponentOctets = 8

const minRsaBits = 2048
const maxRsaBits = 8192
const maxMemberLength = 1400 // 8192 bits in base64url, with room for leading zeros

const unsigned = (member: unknown): Buffer | undefined => {
  if (typeof member !== "string" || member.length > maxMemberLength) return undefined
  const bytes = decodeBase64url(member)
  if (bytes === undefined) return undefined
  const start = bytes.findIndex((octet) => octet !== 0)
  return start < 0 ? undefined : bytes.subarray(start)
}

const bitLength = (bytes: Buffer): number => bytes.length * 8 - Math.clz32(bytes[0] ?? 0) + 24

const importRsa = (jwk: { readonly [member: string]: unknown }): Result.Result<AccountKey, BadPublicKey> => {
  const modulus = unsigned(jwk.n)
  const exponent = unsigned(jwk.e)
  if (modulus === undefined || exponent === undefined) return refuse("RSA members n and e must be base64url integers.")
  const bits = bitLength(modulus)
  if (bits < minRsaBits || bits > maxRsaBits) return refuse("An RSA key must have 2048 to 8192 bits.")
  const isOdd = ((exponent.at(-1) ?? 0) & 1) === 1
  if (!isOdd || (exponent.length === 1 && (exponent[0] ?? 0) < 3)) {
    return refuse("An RSA exponent must be odd and at least 3.")
  }
  if (exponent.length > maxExponentOctets) return refuse("An RSA exponent must have at most 64 bits.")
  const n = modulus.toString("base64url")
  const e = exponent.toString("base64url")
  try {
    const key = createPublicKey({ key: { kty: "RSA", n, e }, format: "jwk" })
    const spki = key.export({ type: "spki", format: "der" })
    return Result.succeed({
      algorithm: "RS256",
      key,
      spki,
      thumbprint: thumbprintOf(`{"e":"${e}","kty":"RSA","n":"${n}"}`)
    })
  } catch {
    return refuse("The RSA key cannot be used.")
  }
}

/**
 * Reads a `jwk` header (RFC 7517): EC P-256 and RSA of 2048 to 8192 bits. Other members than the required ones, private
 * ones included, are neither kept nor read. The algorithm follows from the key, never from a header.
 */
export const importJwk = (jwk: { readonly [member: string]: unknown }): Result.Result<AccountKey, BadPublicKey> =>
  jwk.kty === "EC" ? importEc(jwk) : jwk.kty === "RSA" ? importRsa(jwk) : refuse("The key type must be EC or RSA.")

/** Reads a stored key, which {@link importJwk} has checked before it was stored. */
export const importSpki = (spki: Uint8Array): AccountKey => {
  const der = Buffer.from(spki)
  const key = createPublicKey({ key: der, format: "der", type: "spki" })
  const jwk = key.export({ format: "jwk" })
  return jwk.kty === "EC"
    ? {
      algorithm: "ES256",
      key,
      spki: der,
      thumbprint: thumbprintOf(`{"crv":"P-256","kty":"EC","x":"${jwk.x ?? ""}","y":"${jwk.y ?? ""}"}`)
    }
    : {
      algorithm: "RS256",
      key,
      spki: der,
      thumbprint: thumbprintOf(`{"e":"${jwk.e ?? ""}","kty":"RSA","n":"${jwk.n ?? ""}"}`)
    }
}
