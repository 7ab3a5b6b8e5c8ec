import * as Result from "effect/Result"
import { decode } from "../asn1/DerReader.ts"
import { ED25519, readKeyInfo, readModulus, RSA, rsaWeakness } from "./WeakKey.ts"

/* The weaknesses of a public key itself, whoever owns it and whatever it is used for. */

/**
 * Returns the modulus (big-endian magnitude) of a DER SubjectPublicKeyInfo, or undefined if the key is not an RSA key.
 */
export const modulusOf = (spki: Uint8Array): Uint8Array | undefined => {
  const read = Result.getOrUndefined(readKeyInfo(spki))
  return read?.algorithm.oid === RSA ? Result.getOrUndefined(decode(read.key, readModulus)) : undefined
}

/**
 * Returns the weakness of a well-formed key (DER SubjectPublicKeyInfo) as part of a sentence for the client. Returns
 * undefined if the key is not weak.
 */
export const keyWeakness = (spki: Uint8Array): string | undefined => {
  const read = Result.getOrUndefined(readKeyInfo(spki))
  if (read?.algorithm.oid === ED25519) return edwardsWeakness(read.key)
  const modulus = read?.algorithm.oid === RSA ? Result.getOrUndefined(decode(read.key, readModulus)) : undefined
  return modulus && rsaWeakness(modulus)
}

const P = 2n ** 255n - 19n

const eighth = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n

/**
 * The y coordinates of the eight points whose order divides the cofactor (RFC 7748 section 7 describes such points). If
 * a key is one of these points, anyone can make signatures that verify with it.
 */
const smallOrder: ReadonlySet<bigint> = new Set([0n, 1n, P - 1n, eighth, P - eighth])

const edwardsWeakness = (key: Uint8Array): string | undefined => {
  const hex = Buffer.from(key.toReversed()).toString("hex")
  const y = BigInt(`0x${hex}`) & ((1n << 255n) - 1n)
  if (y >= P) return "the Ed25519 key is not in its canonical encoding"
  return smallOrder.has(y) ? "the Ed25519 key is a point of small order" : undefined
}
