import * as Result from "effect/Result"
import { constants, verify } from "node:crypto"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { isPem } from "../Base64url.ts"
import { shownName } from "../Character.ts"
import { keyName } from "../keys/KeyName.ts"
import type { LeafKey } from "../keys/LeafKeys.ts"
import { defaultLeafKeys, isLeafKey } from "../keys/LeafKeys.ts"
import { mlDsa } from "../keys/MlDsa.ts"
import type { AlgorithmIdentifier, KeyType, SubjectKey } from "../keys/WeakKey.ts"
import { isNull, keyTypeOf, readAlgorithm, readSubjectKey } from "../keys/WeakKey.ts"
import type { RawText } from "./CsrNames.ts"
import { nameIn, readCommonNames, readRequested } from "./CsrNames.ts"
import { CsrRefused, refuse } from "./CsrRefused.ts"

/**
 * Certification requests (RFC 2986). The service reads them with its own DER reader, because it reads very many
 * (docs/decisions/x509.md). The rules are in docs/protocol.md, "CSR policy", and docs/attacks.md, "CSR and
 * certificate".
 */

/** A request whose signature, key and form are accepted. Its names are checked by {@link checkCsrNames}. */
export interface Csr {
  /** The whole request, as it was given. */
  readonly der: Uint8Array
  /**
   * DER SubjectPublicKeyInfo: a view into `der`. It is in the only accepted encoding of a key, so it can be compared
   * and hashed.
   */
  readonly spki: Uint8Array
  readonly keyType: KeyType
  /**
   * The dNSNames of the SAN: in lower case, without one trailing dot, without duplicates, in the order of their first
   * occurrence. Empty if there is no SAN.
   */
  readonly names: ReadonlyArray<string>
  /** The OIDs of the requested extensions, except the SAN, and except a basicConstraints that does not ask for a CA. */
  readonly extensions: ReadonlyArray<string>
  /** The value of each requested extKeyUsage, as DER. `RequestedExtensions.ts` reads it. */
  readonly usages: ReadonlyArray<Uint8Array>
  /** The CNs that look like a DNS name with a dot, normalised like the names, in order of appearance. */
  readonly commonNames: ReadonlyArray<string>
  /** Every CN as it was written, including free text, because policies may check it. */
  readonly subjectNames: ReadonlyArray<string>
}

/**
 * Reads one PKCS#10 request without trailing bytes, and checks everything that does not depend on the order. `keys` are
 * the accepted keys. It does not check whether the key is weak, because that check is the same for all keys.
 */
export const parseCsr = (
  der: Uint8Array,
  keys: ReadonlyArray<LeafKey> = defaultLeafKeys
): Result.Result<Csr, CsrRefused> => {
  const read = decode(der, readRequest)
  if (Result.isFailure(read)) return undecodable(der, read.failure)
  const request = read.success
  const key = readSubjectKey(request.spki)
  if (Result.isFailure(key)) return refuse(key.failure.reason, key.failure.detail)
  if (!isLeafKey(request.spki, keys)) {
    return refuse("key_type", `The key is ${keyName(request.spki)}, and the accepted keys are ${keys.join(", ")}.`)
  }
  const refusal = checkSignature(request, key.success)
  if (refusal !== undefined) return Result.fail(refusal)
  return withNames(der, request, key.success.type)
}

/**
 * Reads a request that {@link parseCsr} accepted before it was stored. The signature and the key are not checked again,
 * because these checks cause two thirds of the cost of {@link parseCsr}.
 */
export const reopenCsr = (der: Uint8Array): Result.Result<Csr, CsrRefused> => {
  const read = decode(der, readRequest)
  if (Result.isFailure(read)) return undecodable(der, read.failure)
  const type = keyTypeOf(read.success.spki)
  if (type === undefined) return refuse("key_type", "The key is neither RSA nor ECDSA nor Ed25519.")
  return withNames(der, read.success, type)
}

const undecodable = (der: Uint8Array, { at, detail }: DerFault): Result.Result<never, CsrRefused> =>
  refuse(
    "undecodable",
    isPem(der)
      ? "The CSR is PEM; send the DER inside it, as base64url."
      : der.length === 0
      ? "The CSR is empty."
      : `The CSR is not a DER PKCS#10 request: ${detail}, at octet ${at}.`
  )

const withNames = (der: Uint8Array, request: Request, keyType: KeyType): Result.Result<Csr, CsrRefused> => {
  const requested = readRequested(request.extensionRequests)
  if (Result.isFailure(requested)) return Result.fail(requested.failure)
  const { extensions, names, usages } = requested.success
  const commonNames = readCommonNames(request.commonNames)
  if (Result.isFailure(commonNames)) return Result.fail(commonNames.failure)
  if (names.length === 0 && commonNames.success.subjectNames.length === 0) {
    return refuse("san_missing", "The CSR names nothing: it has neither a subjectAltName nor a common name.")
  }
  return Result.succeed({ der, spki: request.spki, keyType, names, extensions, usages, ...commonNames.success })
}

/**
 * Checks that SAN and common names together are exactly the set of the order's names (RFC 8555 section 7.4: a name may
 * be in either). A common name counts if it is a name of the order. It is refused if it looks like any other DNS name.
 * A signer of this service ignores all other text in common names. A different signer may copy the subject, and its
 * certificate would then be refused, because the common name is not a name of the order. So with `mayCopySubject`, all
 * other text is refused too. `orderedNames` are normalised.
 */
export const checkCsrNames = (
  csr: Csr,
  orderedNames: ReadonlyArray<string>,
  mayCopySubject = false
): Result.Result<void, CsrRefused> => {
  const ordered = new Set(orderedNames)
  const extra = csr.names.filter((name) => !ordered.has(name))
  if (extra.length > 0) return refuse("san_extra", `The CSR asks for ${firstOf(extra)}, which the order lacks.`)
  const common = mayCopySubject ? csr.subjectNames.map(nameIn) : csr.commonNames
  const foreign = common.filter((name) => !ordered.has(name)).map(shownName)
  if (foreign.length > 0) {
    return refuse("common_name", `The CSR has the common name ${firstOf(foreign)}, which the order lacks.`)
  }
  const requested = new Set([...csr.names, ...csr.subjectNames.map(nameIn)])
  const missing = orderedNames.filter((name) => !requested.has(name))
  if (missing.length === 0) return Result.void
  return refuse("san_missing", `The CSR lacks ${firstOf(missing)}, which the order has.`)
}

/** Returns the first of the names, and how many more there are. */
const firstOf = ([first = "", ...more]: ReadonlyArray<string>): string =>
  more.length === 0 ? first : `${first} and ${more.length} more`

/** The highest number of characters in a common name (RFC 5280 appendix A.1). */
const longestCommonName = 64

/**
 * Returns the CN of a leaf. `request` takes the first CN of the CSR that is one of the leaf's names and is short enough.
 * `first` takes the first short name of the leaf if the CSR has no such CN. `never` takes none. `isPermitted` tells
 * whether the CA may certify a common name.
 */
export const leafCommonName = (
  csr: Csr,
  names: ReadonlyArray<string>,
  source: "request" | "first" | "never",
  isPermitted: (name: string) => boolean
): string | undefined => {
  if (source === "never") return undefined
  const fits = (name: string) => name.length <= longestCommonName && isPermitted(name)
  return csr.subjectNames.map(nameIn).find((name) => fits(name) && names.includes(name)) ??
    (source === "first" ? names.find(fits) : undefined)
}

interface Request {
  readonly signed: Uint8Array
  readonly spki: Uint8Array
  readonly commonNames: ReadonlyArray<RawText>
  /** The content of each extension request. An extension request is a SEQUENCE OF Extension. */
  readonly extensionRequests: ReadonlyArray<Uint8Array>
  readonly algorithm: AlgorithmIdentifier
  readonly signature: Uint8Array
}

const COMMON_NAME = "2.5.4.3"
// The tools of one vendor write the second OID instead of the first. A backend may read either of them, so both count.
const EXTENSION_REQUESTS: ReadonlyArray<string> = ["1.2.840.113549.1.9.14", "1.3.6.1.4.1.311.2.1.14"]

const readRequest = (whole: DerReader): Request => {
  if (whole.next !== Tag.sequence) whole.fail("it does not begin with a SEQUENCE")
  // This reads all elements once, so that even the parts that are not read below must be DER.
  whole.fork().verify()
  const outer = whole.enter(Tag.sequence)
  const info = outer.fork().enter(Tag.sequence)
  const signed = outer.raw(Tag.sequence)
  const algorithm = readAlgorithm(outer)
  const signature = outer.bits()
  outer.end()
  // 0 is the only defined version. Some widely used clients write 1 or 2, which are versions of certificates.
  if (info.small() > 2) info.fail("the version is none of 0, 1 and 2")
  const commonNames: Array<RawText> = []
  const subject = info.enter(Tag.sequence)
  while (subject.more) {
    const relative = subject.enter(Tag.set)
    while (relative.more) {
      const attribute = relative.enter(Tag.sequence)
      const isCommonName = attribute.oid() === COMMON_NAME
      const tag = attribute.next
      const octets = attribute.content(tag)
      attribute.end()
      if (isCommonName) commonNames.push({ tag, octets })
    }
  }
  const spki = info.raw(Tag.sequence)
  const extensionRequests: Array<Uint8Array> = []
  if (info.more) {
    const attributes = info.enter(0xa0)
    while (attributes.more) {
      const attribute = attributes.enter(Tag.sequence)
      const isRequest = EXTENSION_REQUESTS.includes(attribute.oid())
      const values = attribute.enter(Tag.set)
      attribute.end()
      if (!isRequest) continue
      if (!values.more) values.fail("an extension request is empty")
      while (values.more) extensionRequests.push(values.content(Tag.sequence))
    }
  }
  info.end()
  return { signed, spki, commonNames, extensionRequests, algorithm, signature }
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
const brokenDigests = new Set([
  "1.2.840.113549.1.1.2",
  "1.2.840.113549.1.1.3",
  "1.2.840.113549.1.1.4",
  "1.2.840.113549.1.1.5",
  "1.3.14.3.2.3",
  "1.3.14.3.2.29",
  "1.2.840.10045.4.1",
  "1.2.840.10040.4.3"
])

const RSA_PSS = "1.2.840.113549.1.1.10"

const checkSignature = (request: Request, key: SubjectKey): CsrRefused | undefined => {
  const { algorithm, signature, signed } = request
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
