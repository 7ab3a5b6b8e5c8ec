import * as Result from "effect/Result"
import { constants, verify } from "node:crypto"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { mlDsa } from "../keys/MlDsa.ts"
import type { AlgorithmIdentifier, KeyType, SubjectKey } from "../keys/WeakKey.ts"
import { isNull, readAlgorithm, RSA_PSS } from "../keys/WeakKey.ts"
import { CsrRefused } from "./CsrRefused.ts"

/* The signature of a certification request (RFC 2986 section 4.2), with which the client proves that it has the key. */

/** The parts of a request that its signature concerns. */
export interface Signed {
  /** The octets that are signed. */
  readonly signed: Uint8Array
  readonly algorithm: AlgorithmIdentifier
  readonly signature: Uint8Array
}

/**
 * Reads the frame of a request: what is signed, the signature, and a reader of CertificationRequestInfo after its
 * version.
 */
export const readFrame = (whole: DerReader): Signed & { readonly info: DerReader } => {
  if (whole.next !== Tag.sequence) whole.fail("it does not begin with a SEQUENCE")
  // This reads all elements once, so that even the parts that are not read below must be DER.
  whole.verifyOnly()
  const outer = whole.enter(Tag.sequence)
  const info = outer.fork().enter(Tag.sequence)
  const signed = outer.raw(Tag.sequence)
  const algorithm = readAlgorithm(outer)
  const signature = outer.bits()
  outer.end()
  // 0 is the only defined version. Some widely used clients write 1 or 2, which are versions of certificates.
  if (info.small() > 2) info.fail("the version is none of 0, 1 and 2")
  return { signed, algorithm, signature, info }
}

interface Scheme {
  readonly type: KeyType
  readonly hash: string | null
}

const schemes: { readonly [oid: string]: Scheme } = {
  "1.2.840.113549.1.1.14": { type: "rsa", hash: "sha224" },
  "1.2.840.113549.1.1.11": { type: "rsa", hash: "sha256" },
  "1.2.840.113549.1.1.12": { type: "rsa", hash: "sha384" },
  "1.2.840.113549.1.1.13": { type: "rsa", hash: "sha512" },
  "1.2.840.10045.4.3.1": { type: "ecdsa", hash: "sha224" },
  "1.2.840.10045.4.3.2": { type: "ecdsa", hash: "sha256" },
  "1.2.840.10045.4.3.3": { type: "ecdsa", hash: "sha384" },
  "1.2.840.10045.4.3.4": { type: "ecdsa", hash: "sha512" },
  "1.3.101.112": { type: "ed25519", hash: null },
  ...Object.fromEntries(mlDsa.map(({ name, oid }) => [oid, { type: name, hash: null }]))
}

/** MD2, MD4, MD5 and SHA-1 with RSA, including two OIDs of the OIW; SHA-1 with ECDSA and DSA. */
export const brokenDigests = new Set([
  "1.2.840.113549.1.1.2",
  "1.2.840.113549.1.1.3",
  "1.2.840.113549.1.1.4",
  "1.2.840.113549.1.1.5",
  "1.3.14.3.2.3",
  "1.3.14.3.2.29",
  "1.2.840.10045.4.1",
  "1.2.840.10040.4.3"
])

/** Returns why the signature of a request is refused, or undefined if it verifies with the key in the request. */
export const checkSignature = ({ algorithm, signature, signed }: Signed, key: SubjectKey): CsrRefused | undefined => {
  if (brokenDigests.has(algorithm.oid)) return brokenDigest()
  const pss = algorithm.oid === RSA_PSS ? readPss(algorithm.parameters) : undefined
  if (pss === "broken_digest") return brokenDigest()
  if (pss === "unknown") return unknownAlgorithm("RSASSA-PSS of other parameters")
  const scheme = pss ?? schemes[algorithm.oid]
  if (scheme === undefined) return unknownAlgorithm(`the algorithm ${algorithm.oid}`)
  if (scheme.type !== key.type) return otherKey(scheme.type, key.type)
  // RFC 4055 requires NULL, but absent parameters must also be accepted. The other families have no parameters.
  if (
    pss === undefined && algorithm.parameters !== undefined && !(key.type === "rsa" && isNull(algorithm.parameters))
  ) {
    return surplusParameters()
  }
  const input = pss === undefined
    ? key.object
    : { key: key.object, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: pss.saltLength }
  const verified = Result.try(() => verify(scheme.hash, signed, input, signature))
  return Result.isSuccess(verified) && verified.success ? undefined : badSignature()
}

const brokenDigest = () =>
  new CsrRefused({
    reason: "digest",
    detail: "The CSR is signed with a digest that is no longer safe, such as SHA-1 or MD5."
  })
const badSignature = () =>
  new CsrRefused({ reason: "signature", detail: "The signature of the CSR does not verify under its key." })
const algorithmRefused = (detail: string) => new CsrRefused({ reason: "signature_algorithm", detail })
const unknownAlgorithm = (given: string) =>
  algorithmRefused(
    `The CSR is signed with ${given}. This server verifies RSA (PKCS #1 or PSS) and ECDSA, each with a digest of SHA-2, and Ed25519.`
  )
const otherKey = (signed: KeyType, held: KeyType) =>
  algorithmRefused(
    `The CSR is signed with an algorithm for ${familyNames[signed]} keys, but holds an ${familyNames[held]} key.`
  )
const surplusParameters = () =>
  algorithmRefused("The signature algorithm of the CSR has parameters, which it may not have.")
const familyNames: { readonly [T in KeyType]: string } = {
  "ecdsa": "ECDSA",
  "ed25519": "Ed25519",
  "rsa": "RSA",
  "ml-dsa-44": "ML-DSA-44",
  "ml-dsa-65": "ML-DSA-65",
  "ml-dsa-87": "ML-DSA-87"
}

/**
 * Reads RSASSA-PSS-params (RFC 4055 section 3.1), with the same SHA-2 digest for message and mask. The default digest
 * of both is SHA-1, so an absent digest counts as broken.
 */
const readPss = (
  parameters: Uint8Array | undefined
): Scheme & { readonly saltLength: number } | "broken_digest" | "unknown" => {
  const read = decode(parameters ?? new Uint8Array(), (reader) => {
    const fields = reader.enter(Tag.sequence)
    const hash = fields.next === 0xa0 ? readAlgorithm(fields.enter(0xa0)).oid : undefined
    let mask: string | undefined
    if (fields.next === 0xa1) {
      const generator = fields.enter(0xa1).enter(Tag.sequence)
      if (generator.oid() !== "1.2.840.113549.1.1.8") generator.fail("the mask function is unknown")
      mask = readAlgorithm(generator).oid
    }
    const saltLength = fields.next === 0xa2 ? fields.enter(0xa2).small() : 20
    if (fields.next === 0xa3 && fields.enter(0xa3).small() !== 1) fields.fail("the trailer field is unknown")
    fields.end()
    return { hash, mask, saltLength }
  })
  if (Result.isFailure(read)) return "unknown"
  const { hash, mask, saltLength } = read.success
  if (hash === undefined || mask === undefined || hash === SHA1 || mask === SHA1 || hash === MD5 || mask === MD5) {
    return "broken_digest"
  }
  const name = sha2[hash]
  return name === undefined || mask !== hash ? "unknown" : { type: "rsa", hash: name, saltLength }
}

const SHA1 = "1.3.14.3.2.26"
const MD5 = "1.2.840.113549.2.5"
const sha2: { readonly [oid: string]: string } = {
  "2.16.840.1.101.3.4.2.1": "sha256",
  "2.16.840.1.101.3.4.2.2": "sha384",
  "2.16.840.1.101.3.4.2.3": "sha512"
}
