import type { KeyObject } from "node:crypto"
import { createPublicKey } from "node:crypto"
import { bits, oid, sequence } from "../asn1/DerWriter.ts"

/* The keys of ML-DSA (FIPS 204), in certificates (RFC 9881) and in signed requests (RFC 9964). */

/** A parameter set of ML-DSA, and the only sizes that its keys and signatures have (FIPS 204 table 2). */
export interface MlDsa {
  /** The name in lists and in configuration, which is also the runtime's name of the type. */
  readonly name: "ml-dsa-44" | "ml-dsa-65" | "ml-dsa-87"
  /** The `alg` of a JWS and of a JWK (RFC 9964). */
  readonly algorithm: "ML-DSA-44" | "ML-DSA-65" | "ML-DSA-87"
  /** The OID of keys and of signatures (RFC 9881 section 2). Neither has parameters. */
  readonly oid: string
  readonly keyOctets: number
  readonly signatureOctets: number
}

/** All parameter sets of ML-DSA. */
export const mlDsa: ReadonlyArray<MlDsa> = [
  {
    name: "ml-dsa-44",
    algorithm: "ML-DSA-44",
    oid: "2.16.840.1.101.3.4.3.17",
    keyOctets: 1312,
    signatureOctets: 2420
  },
  {
    name: "ml-dsa-65",
    algorithm: "ML-DSA-65",
    oid: "2.16.840.1.101.3.4.3.18",
    keyOctets: 1952,
    signatureOctets: 3309
  },
  {
    name: "ml-dsa-87",
    algorithm: "ML-DSA-87",
    oid: "2.16.840.1.101.3.4.3.19",
    keyOctets: 2592,
    signatureOctets: 4627
  }
]

/** Returns the parameter set of an OID, or undefined if the OID has another meaning. */
export const mlDsaOf = (algorithm: string): MlDsa | undefined => mlDsa.find(({ oid }) => oid === algorithm)

/** Returns the DER SubjectPublicKeyInfo of a key. `key` has `keyOctets` octets. */
export const mlDsaSpki = (set: MlDsa, key: Uint8Array): Buffer =>
  Buffer.from(sequence(sequence(oid(set.oid)), bits(key)))

/**
 * Reads a DER SubjectPublicKeyInfo of a parameter set. Returns undefined if the runtime has no ML-DSA. The caller has
 * checked the size of the key. Every octet string of that size is a key (FIPS 204 algorithm 23), so an import fails for
 * no other reason. An older Node.js with a newer OpenSSL imports the key without a type, and is not known to verify
 * with it, so the type is compared.
 */
export const importMlDsa = (set: MlDsa, spki: Uint8Array): KeyObject | undefined => {
  try {
    const key = createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" })
    return key.asymmetricKeyType === set.name ? key : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the name of the parameter set of a key that the runtime does not have, such as `ML-DSA-65`. Returns undefined
 * if the runtime has it, or if the key is of another kind. `name` is what `keyName` returns.
 */
export const lackedMlDsa = (name: string): MlDsa["algorithm"] | undefined => {
  const set = mlDsa.find((one) => one.name === name)
  return set === undefined || isMlDsaSupported(set) ? undefined : set.algorithm
}

const supported = new Map<MlDsa, boolean>()

/** Returns whether the runtime can verify signatures of a parameter set: Node.js 22 cannot. */
export const isMlDsaSupported = (set: MlDsa): boolean => {
  const known = supported.get(set)
  if (known !== undefined) return known
  const found = importMlDsa(set, mlDsaSpki(set, new Uint8Array(set.keyOctets))) !== undefined
  supported.set(set, found)
  return found
}
