import type { KeyObject } from "node:crypto"
import { Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence, unsigned } from "../asn1/DerWriter.ts"
import { mlDsa } from "../keys/MlDsa.ts"

/* The form in which this service writes a private key: PKCS#8 (RFC 5958). */

/** The tag of a seed in an ML-DSA-PrivateKey. */
const seedTag = 0x80

/**
 * Returns a private key as PKCS#8 DER. Of an ML-DSA key only the seed is written (RFC 9881 section 6), from which
 * everything else follows: the form of the runtime has 4 to 5 kilobytes, and what follows from the seed could contradict
 * it. A key that was read without its seed cannot be written so, and has the form of the runtime.
 */
export const pkcs8Of = (key: KeyObject): Uint8Array => {
  const set = mlDsa.find(({ name }) => name === key.asymmetricKeyType)
  const seed = set === undefined ? undefined : seedOf(key)
  return set === undefined || seed === undefined
    ? key.export({ type: "pkcs8", format: "der" })
    : sequence(
      unsigned(Uint8Array.of(0)),
      sequence(oid(set.oid)),
      element(Tag.octetString, element(seedTag, seed))
    )
}

/** Returns the seed of an ML-DSA key. It is the member `priv` of the JWK (RFC 9964 section 3). */
const seedOf = (key: KeyObject): Uint8Array | undefined => {
  try {
    const { priv } = key.export({ format: "jwk" })
    return typeof priv === "string" ? Buffer.from(priv, "base64url") : undefined
  } catch {
    return undefined
  }
}
