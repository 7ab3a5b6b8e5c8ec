import * as Result from "effect/Result"
import { X509Certificate } from "node:crypto"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { splitPem } from "../asn1/Pem.ts"
import { sha256 } from "../Digest.ts"
import { keyName } from "../keys/KeyName.ts"
import { mlDsa } from "../keys/MlDsa.ts"
import { readAlgorithm } from "../keys/WeakKey.ts"
import { keyIdentifierOf } from "./CertId.ts"
import type { Certificate } from "./Certificate.ts"
import { latin1, readCertificate, SUBJECT_ALT_NAME, URI } from "./Certificate.ts"
import { serialText } from "./Serial.ts"

/**
 * Decodes the certificates of a stored chain into readable form. Nothing is checked here, because `Chain.ts` checked
 * the chain before it was stored.
 */

/** A certificate in readable form. Times are epoch seconds, and octets are lower-case hexadecimal. */
export interface DecodedCertificate {
  /** The subject, most specific part last. Empty if all names are in `sans`. */
  readonly subject: string
  readonly issuer: string
  readonly serial: string
  readonly notBefore: number
  readonly notAfter: number
  readonly keyType: string
  readonly signatureAlgorithm: string
  /** DNS names, unchanged. A name of another kind is preceded by its kind. */
  readonly sans: ReadonlyArray<string>
  readonly sha256: string
  readonly ski: string | undefined
  readonly aki: string | undefined
  readonly keyUsage: ReadonlyArray<string>
  readonly extendedKeyUsage: ReadonlyArray<string>
  readonly crlUrls: ReadonlyArray<string>
  readonly caIssuersUrls: ReadonlyArray<string>
  readonly isCa: boolean
}

const hex = (octets: Uint8Array): string => Buffer.from(octets).toString("hex")

const algorithms: { readonly [oid: string]: string } = {
  "1.2.840.113549.1.1.5": "sha1WithRSAEncryption",
  "1.2.840.113549.1.1.10": "RSASSA-PSS",
  "1.2.840.113549.1.1.11": "sha256WithRSAEncryption",
  "1.2.840.113549.1.1.12": "sha384WithRSAEncryption",
  "1.2.840.113549.1.1.13": "sha512WithRSAEncryption",
  "1.2.840.10045.4.3.2": "ecdsa-with-SHA256",
  "1.2.840.10045.4.3.3": "ecdsa-with-SHA384",
  "1.2.840.10045.4.3.4": "ecdsa-with-SHA512",
  "1.3.101.112": "ed25519",
  "1.3.101.113": "ed448",
  ...Object.fromEntries(mlDsa.map(({ algorithm, oid }) => [oid, algorithm]))
}

// The key usages, in the order of their bits (RFC 5280 section 4.2.1.3).
const usages = [
  "digitalSignature",
  "nonRepudiation",
  "keyEncipherment",
  "dataEncipherment",
  "keyAgreement",
  "keyCertSign",
  "cRLSign",
  "encipherOnly",
  "decipherOnly"
]

const purposes: { readonly [oid: string]: string } = {
  "1.3.6.1.5.5.7.3.1": "serverAuth",
  "1.3.6.1.5.5.7.3.2": "clientAuth",
  "1.3.6.1.5.5.7.3.3": "codeSigning",
  "1.3.6.1.5.5.7.3.4": "emailProtection",
  "1.3.6.1.5.5.7.3.8": "timeStamping",
  "1.3.6.1.5.5.7.3.9": "OCSPSigning"
}

/**
 * Reads an extension. Returns an empty array if the certificate lacks the extension, or if the extension cannot be
 * read.
 */
const within = <A>(
  { extensions }: Certificate,
  oid: string,
  read: (reader: DerReader) => ReadonlyArray<A>
): ReadonlyArray<A> => {
  const found = extensions.find((extension) => extension.oid === oid)
  return found === undefined ? [] : Result.getOrElse(decode(found.value, read), () => [])
}

const ip = (octets: Uint8Array): string => {
  if (octets.length === 4) return octets.join(".")
  const groups = Array.from({ length: 8 }, (_, at) => hex(octets.subarray(2 * at, 2 * at + 2)))
  return octets.length === 16 ? new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1) : hex(octets)
}

const kinds: { readonly [tag: number]: (octets: Uint8Array) => string } = {
  0x81: (octets) => `email:${latin1(octets)}`,
  0x82: latin1,
  0x86: (octets) => `uri:${latin1(octets)}`,
  0x87: (octets) => `ip:${ip(octets)}`
}

const readSans = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) {
    const kind = kinds[list.next]
    if (kind === undefined) list.skip()
    else found.push(kind(list.content(list.next)))
  }
  return found
}

const readUsage = (reader: DerReader): ReadonlyArray<string> => {
  const [, ...octets] = reader.content(Tag.bitString)
  return usages.filter((_, bit) => ((octets[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0)
}

const readPurposes = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) {
    const oid = list.oid()
    found.push(purposes[oid] ?? oid)
  }
  return found
}

/** Returns the URLs among GeneralNames. */
const urls = (names: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  while (names.more) {
    if (names.next === URI) found.push(latin1(names.content(URI)))
    else names.skip()
  }
  return found
}

const fullName = 0xa0

const readPoints = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) {
    const point = list.enter(Tag.sequence)
    if (point.next !== fullName) continue
    const name = point.enter(fullName)
    if (name.next === fullName) found.push(...urls(name.enter(fullName)))
  }
  return found
}

const readIssuers = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) {
    const access = list.enter(Tag.sequence)
    if (access.oid() === "1.3.6.1.5.5.7.48.2") found.push(...urls(access))
  }
  return found
}

const readIsCa = (reader: DerReader): ReadonlyArray<boolean> => {
  const fields = reader.enter(Tag.sequence)
  return [fields.next === Tag.boolean && fields.boolean()]
}

// For an empty name the runtime returns undefined, although the declared type is string.
const nameText = (lines: string | undefined): string => (lines ?? "").split("\n").join(", ")

const decoded = (der: Uint8Array, certificate: Certificate): DecodedCertificate => {
  const { issuer, subject } = new X509Certificate(der)
  const { notAfter, notBefore, outerAlgorithm, serial, spki, subjectKeyIdentifier } = certificate
  const aki = keyIdentifierOf(certificate)
  const algorithm = Result.getOrElse(decode(outerAlgorithm, (reader) => readAlgorithm(reader).oid), () => "unknown")
  return {
    subject: nameText(subject),
    issuer: nameText(issuer),
    serial: serialText(serial),
    notBefore,
    notAfter,
    keyType: keyName(spki),
    signatureAlgorithm: algorithms[algorithm] ?? algorithm,
    sans: within(certificate, SUBJECT_ALT_NAME, readSans),
    sha256: sha256(der),
    ski: subjectKeyIdentifier === undefined ? undefined : hex(subjectKeyIdentifier),
    aki: aki === undefined ? undefined : hex(aki),
    keyUsage: within(certificate, "2.5.29.15", readUsage),
    extendedKeyUsage: within(certificate, "2.5.29.37", readPurposes),
    crlUrls: within(certificate, "2.5.29.31", readPoints),
    caIssuersUrls: within(certificate, "1.3.6.1.5.5.7.1.1", readIssuers),
    isCa: within(certificate, "2.5.29.19", readIsCa).includes(true)
  }
}

/** Returns the certificates of a stored chain, leaf first. A certificate that cannot be read is left out. */
export const decodeChain = (chainPem: string): ReadonlyArray<DecodedCertificate> =>
  Result.getOrElse(splitPem(chainPem, "nothing"), () => []).flatMap(({ der }) =>
    Result.match(
      Result.flatMap(
        Result.mapError(readCertificate(der), () => undefined),
        (certificate) => Result.try(() => decoded(der, certificate))
      ),
      { onFailure: () => [], onSuccess: (one) => [one] }
    )
  )
