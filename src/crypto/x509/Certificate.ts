import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { verify, X509Certificate } from "node:crypto"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"

/** Reads certificates: the leaves that this service has made, the files of CAs, and the chains of every backend. */

/** One extension of a certificate. */
interface Extension {
  readonly oid: string
  readonly critical: boolean
  /**
   * Whether `critical FALSE` is written out. DER omits this default value, but certificates of other CAs may contain
   * it.
   */
  readonly spelledDefault: boolean
  /** The DER within the OCTET STRING. */
  readonly value: Uint8Array
}

/**
 * A parsed certificate (RFC 5280 section 4.1). Fields of bytes are views into the DER. Names and algorithms are whole
 * elements.
 */
export interface Certificate {
  readonly signed: Uint8Array
  /** The version. 2 means v3. */
  readonly version: number
  /** The octets in the content of the serial number. */
  readonly serial: Uint8Array
  readonly innerAlgorithm: Uint8Array
  readonly issuer: Uint8Array
  /** The start of the validity in epoch seconds. Both ends of the validity are inclusive. */
  readonly notBefore: number
  readonly notAfter: number
  readonly subject: Uint8Array
  readonly spki: Uint8Array
  readonly extensions: ReadonlyArray<Extension>
  readonly subjectKeyIdentifier: Uint8Array | undefined
  readonly outerAlgorithm: Uint8Array
  readonly signature: Uint8Array
}

/** Reads one certificate strictly: it must be DER at every depth, without trailing bytes. Only the form is checked. */
export const readCertificate = (der: Uint8Array): Result.Result<Certificate, DerFault> =>
  decode(der, (whole) => {
    whole.verifyOnly()
    const outer = whole.enter(Tag.sequence)
    const fields = outer.fork().enter(Tag.sequence)
    const signed = outer.raw(Tag.sequence)
    const outerAlgorithm = outer.raw(Tag.sequence)
    const signature = outer.bits()
    outer.end()
    const version = fields.next === 0xa0 ? only(fields.enter(0xa0), (inner) => inner.small()) : 0
    const serial = fields.integer()
    const innerAlgorithm = fields.raw(Tag.sequence)
    const issuer = fields.raw(Tag.sequence)
    const validity = fields.enter(Tag.sequence)
    const notBefore = validity.time()
    const notAfter = validity.time()
    validity.end()
    const subject = fields.raw(Tag.sequence)
    const spki = fields.raw(Tag.sequence)
    while (fields.next === 0x81 || fields.next === 0x82) fields.skip()
    const extensions = fields.more ? only(fields.enter(0xa3), readExtensions) : []
    fields.end()
    const identifier = extensions.find(({ oid }) => oid === SUBJECT_KEY_IDENTIFIER)
    const subjectKeyIdentifier = identifier === undefined ? undefined : within(fields, identifier.value, octetString)
    const names = { signed, version, serial, innerAlgorithm, issuer, notBefore, notAfter, subject, spki }
    return { ...names, extensions, subjectKeyIdentifier, outerAlgorithm, signature }
  })

export const SUBJECT_KEY_IDENTIFIER = "2.5.29.14"
export const SUBJECT_ALT_NAME = "2.5.29.17"

/** Reads an OCTET STRING. */
export const octetString = (reader: DerReader): Uint8Array => reader.content(Tag.octetString)

/** Runs `read`, which must read everything that the reader contains. */
export const only = <A>(reader: DerReader, read: (reader: DerReader) => A): A => {
  const value = read(reader)
  reader.end()
  return value
}

/** Reads DER inside a field of `outer`. A fault in this DER is reported as a fault of `outer`. */
const within = <A>(outer: DerReader, der: Uint8Array, read: (reader: DerReader) => A): A =>
  Result.getOrElse(decode(der, read), (fault) => outer.fail(fault.detail))

const readExtensions = (reader: DerReader): ReadonlyArray<Extension> => {
  const extensions: Array<Extension> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) {
    const one = list.enter(Tag.sequence)
    const oid = one.oid()
    const spelled = one.next === Tag.boolean
    const critical = spelled && one.boolean()
    extensions.push({ oid, critical, spelledDefault: spelled && !critical, value: one.content(Tag.octetString) })
    one.end()
  }
  return extensions
}

/** Returns the octets as characters with the same code points. For ASCII, this is the text itself. */
export const latin1 = (octets: Uint8Array): string =>
  Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("latin1")

/** The kinds of GeneralName (RFC 5280 section 4.2.1.6). */
export const DNS_NAME = 0x82
export const URI = 0x86

/** Returns all names in the content of a GeneralNames. Each name must have the wanted kind. */
export const readNames = (list: DerReader, kind: number): ReadonlyArray<string> => {
  const names: Array<string> = []
  while (list.more) names.push(latin1(list.content(kind)))
  return names
}

/** Returns the AlgorithmIdentifier (as hexadecimal DER) and the digest with which the key of an issuer signs. */
export const schemeOf = (
  key: KeyObject
): { readonly algorithm: string; readonly digest: string | null } | undefined => {
  if (key.asymmetricKeyType === "rsa") return { algorithm: "300d06092a864886f70d01010b0500", digest: "sha256" }
  const curve = key.asymmetricKeyDetails?.namedCurve
  if (curve === "prime256v1") return { algorithm: "300a06082a8648ce3d040302", digest: "sha256" }
  if (curve === "secp384r1") return { algorithm: "300a06082a8648ce3d040303", digest: "sha384" }
  if (key.asymmetricKeyType === "ml-dsa-65") return { algorithm: "300b0609608648016503040312", digest: null }
  return key.asymmetricKeyType === "ml-dsa-87" ? { algorithm: "300b0609608648016503040313", digest: null } : undefined
}

/** Returns whether the signature verifies with this key. */
export const isSigned = (certificate: Certificate, key: KeyObject, digest: string | null): boolean =>
  Result.getOrElse(Result.try(() => verify(digest, certificate.signed, key, certificate.signature)), () => false)

/**
 * Returns whether the CA with the certificate `issuer` issued the certificate `subject`. Names, key identifiers, usage
 * and signature are checked. If one of these cannot be decoded, returns false. A self-issued root needs no CA
 * extension, because it may be older than that extension.
 */
export const issued = (issuer: Uint8Array, subject: Uint8Array): boolean =>
  Result.getOrElse(
    Result.try(() => {
      const above = new X509Certificate(issuer)
      const below = new X509Certificate(subject)
      const isCa = above.ca || above.checkIssued(above)
      return isCa && below.checkIssued(above) && below.verify(above.publicKey)
    }),
    () => false
  )
