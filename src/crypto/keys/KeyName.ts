import * as Result from "effect/Result"
import { decode, Tag } from "../asn1/DerReader.ts"
import { modulusOf } from "./KeyWeakness.ts"
import { mlDsaOf } from "./MlDsa.ts"
import { ED25519, readAlgorithm } from "./WeakKey.ts"

const curves: { readonly [oid: string]: string } = {
  "1.2.840.10045.3.1.7": "ecdsa-p256",
  "1.3.132.0.34": "ecdsa-p384",
  "1.3.132.0.35": "ecdsa-p521"
}

/**
 * Returns a readable name of a key: `ecdsa-p256`, `rsa-2048`, `ed25519`, `ml-dsa-44`, or `unknown`. Only the octets of
 * the SubjectPublicKeyInfo are read, because lists show many keys, and an import of each key would cost much more.
 */
export const keyName = (spki: Uint8Array): string => {
  const modulus = modulusOf(spki)
  if (modulus !== undefined) return `rsa-${modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24}`
  const algorithm = decode(spki, (reader) => {
    const info = reader.enter(Tag.sequence)
    const found = readAlgorithm(info)
    info.skip(Tag.bitString)
    return found
  })
  if (Result.isFailure(algorithm)) return "unknown"
  const { oid, parameters = new Uint8Array() } = algorithm.success
  if (oid === ED25519) return "ed25519"
  const set = mlDsaOf(oid)
  if (set !== undefined) return set.name
  const curve = Result.getOrElse(decode(parameters, (reader) => reader.oid()), () => "")
  return curves[curve] ?? "unknown"
}
