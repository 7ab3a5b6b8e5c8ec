import * as Result from "effect/Result"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { isPem } from "../Base64url.ts"
import { shownName } from "../Character.ts"
import { keyName } from "../keys/KeyName.ts"
import type { LeafKey } from "../keys/LeafKeys.ts"
import { defaultLeafKeys, isLeafKey } from "../keys/LeafKeys.ts"
import type { KeyType } from "../keys/WeakKey.ts"
import { keyTypeOf, readSubjectKey } from "../keys/WeakKey.ts"
import type { RawText } from "./CsrNames.ts"
import { nameIn, readCommonNames, readRequested } from "./CsrNames.ts"
import type { CsrRefused } from "./CsrRefused.ts"
import { refuse } from "./CsrRefused.ts"
import type { Signed } from "./CsrSignature.ts"
import { checkSignature, readFrame } from "./CsrSignature.ts"

/**
 * Certification requests (RFC 2986). The service reads them with its own DER reader, because it reads very many
 * requests (docs/contribute/decisions/x509.md). The rules are in docs/reference/protocol.md, "CSR policy", and
 * docs/contribute/attacks.md, "CSR and certificate".
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
 * be in either). A common name counts if it is a name of the order. A common name that looks like any other DNS name is
 * refused. A signer of this service ignores all other text in common names. A different signer may copy the subject,
 * and its certificate would then be refused, because the common name is not a name of the order. So with
 * `mayCopySubject`, all other text is refused too. `orderedNames` are normalised.
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

interface Request extends Signed {
  readonly spki: Uint8Array
  readonly commonNames: ReadonlyArray<RawText>
  /** The content of each extension request. An extension request is a SEQUENCE OF Extension. */
  readonly extensionRequests: ReadonlyArray<Uint8Array>
}

const COMMON_NAME = "2.5.4.3"
// The tools of one vendor write the second OID instead of the first. A backend may read either of them, so both count.
const EXTENSION_REQUESTS: ReadonlyArray<string> = ["1.2.840.113549.1.9.14", "1.3.6.1.4.1.311.2.1.14"]

const readRequest = (whole: DerReader): Request => {
  const { algorithm, info, signature, signed } = readFrame(whole)
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
