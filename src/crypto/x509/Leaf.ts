import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Tag } from "../asn1/DerReader.ts"
import { bits, element, oid, sequence, text, time, unsigned } from "../asn1/DerWriter.ts"
import { sha256Octets } from "../Digest.ts"
import type { KeyType } from "../keys/WeakKey.ts"
import { readKeyInfo } from "../keys/WeakKey.ts"
import type { CaKey, NotSigned } from "./CaKey.ts"
import { UnsupportedIssuer } from "./CaKey.ts"
import { readCertificate } from "./Certificate.ts"
import type { LeafContent } from "./LeafContent.ts"
import { extension, relativeName } from "./Part.ts"

/**
 * Makes certificates from a key and validated names, and from nothing else (docs/contribute/decisions/local-ca.md, "The
 * leaf"). The parts that depend on the issuer are encoded only once, so a leaf costs a few concatenations and one
 * signature.
 */

/** The contents of one leaf. The caller has compared the names and the common name with the order. */
export interface LeafRequest {
  /** The DER SubjectPublicKeyInfo in the CSR. */
  readonly spki: Uint8Array
  readonly keyType: KeyType
  /** The dNSNames of the SAN, in the order of the order's identifiers. There is at least one. */
  readonly names: ReadonlyArray<string>
  /** One of `names` with at most 64 characters. Undefined if the subject has no common name. */
  readonly commonName: string | undefined
  /** What the kind of the certificate adds. */
  readonly content: LeafContent
  /** The serial, from {@link serialFrom}. */
  readonly serial: Uint8Array
  /** The start of the validity in epoch seconds, from {@link validityWindow}. Both ends are inclusive. */
  readonly notBefore: number
  readonly notAfter: number
}

/** Signs leaves with the certificate and the key of one CA. */
export interface LeafIssuer {
  /** Returns the leaf as DER. */
  readonly build: (request: LeafRequest) => Effect.Effect<Uint8Array, NotSigned>
}

const OBJECT = {
  subjectKeyIdentifier: oid("2.5.29.14"),
  keyUsage: oid("2.5.29.15"),
  subjectAltName: oid("2.5.29.17"),
  commonName: oid("2.5.4.3")
}

/** The encoded fields of a v3 certificate. Dates are epoch seconds, and the serial has 16 octets. */
export interface CertificateFields {
  readonly serial: Uint8Array
  readonly issuer: Uint8Array
  readonly notBefore: number
  readonly notAfter: number
  readonly subject: Uint8Array
  readonly spki: Uint8Array
  readonly extensions: ReadonlyArray<Uint8Array>
}

const VERSION_3 = element(0xa0, unsigned(Uint8Array.of(2)))

/** Returns a signed v3 certificate as DER (RFC 5280 section 4.1). */
export const signCertificate = (
  signer: CaKey,
  fields: CertificateFields
): Effect.Effect<Uint8Array, NotSigned> => {
  const signed = sequence(
    VERSION_3,
    unsigned(fields.serial),
    signer.algorithm,
    fields.issuer,
    sequence(time(fields.notBefore), time(fields.notAfter)),
    fields.subject,
    fields.spki,
    element(0xa3, sequence(...fields.extensions))
  )
  return Effect.map(signer.sign(signed), (signature) => sequence(signed, signer.algorithm, bits(signature)))
}

/** Returns the leftmost 160 bits of the SHA-256 of the bits of a public key (RFC 7093 method 1). */
export const keyIdentifier = (spki: Uint8Array): Uint8Array => {
  const read = readKeyInfo(spki)
  return sha256Octets(Result.isSuccess(read) ? read.success.key : spki).subarray(0, 20)
}

/**
 * Returns a serial number from 16 random octets. Its first two bits are set to 0 and 1, so that the number is always
 * positive and as short as possible.
 */
export const serialFrom = (random16: Uint8Array): Uint8Array => {
  const serial = Uint8Array.from(random16)
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40
  return serial
}

/** Returns the subjectKeyIdentifier extension for a key. */
export const subjectKeyIdentifier = (spki: Uint8Array): Uint8Array =>
  extension(OBJECT.subjectKeyIdentifier, false, element(Tag.octetString, keyIdentifier(spki)))

/** Returns the subjectAltName extension for encoded GeneralNames. It is critical only if the subject is empty. */
export const subjectAltName = (generalNames: ReadonlyArray<Uint8Array>, subjectIsEmpty: boolean): Uint8Array =>
  extension(OBJECT.subjectAltName, subjectIsEmpty, sequence(...generalNames))

/** Returns a GeneralName of the kind dNSName. */
export const dnsName = (name: string): Uint8Array => text(0x82, name)

/** The critical keyUsage extension with digitalSignature: one used bit, seven unused ones. */
export const DIGITAL_SIGNATURE = extension(OBJECT.keyUsage, true, element(Tag.bitString, Uint8Array.of(7, 0x80)))
const DIGITAL_SIGNATURE_AND_ENCIPHERMENT = extension(
  OBJECT.keyUsage,
  true,
  element(Tag.bitString, Uint8Array.of(5, 0xa0))
)

const uri = (url: string): Uint8Array => text(0x86, url)

/**
 * Returns the extensions CRLDP (one DistributionPoint with all URLs) and AIA (one AccessDescription for each caIssuers
 * URL).
 */
const issuerUrls = (crlDistributionPoints: ReadonlyArray<string>, caIssuerUrls: ReadonlyArray<string>) => {
  const out: Array<Uint8Array> = []
  if (crlDistributionPoints.length > 0) {
    const names = element(0xa0, element(0xa0, ...crlDistributionPoints.map(uri)))
    out.push(extension(oid("2.5.29.31"), false, sequence(sequence(names))))
  }
  if (caIssuerUrls.length > 0) {
    const entries = caIssuerUrls.map((url) => sequence(oid("1.3.6.1.5.5.7.48.2"), uri(url)))
    out.push(extension(oid("1.3.6.1.5.5.7.1.1"), false, sequence(...entries)))
  }
  return out
}

/** The public part of an issuer. The URLs are ASCII. If an array is empty, its extension is left out. */
export interface IssuerParts {
  readonly issuerCertDer: Uint8Array
  readonly crlDistributionPoints: ReadonlyArray<string>
  readonly caIssuerUrls: ReadonlyArray<string>
}

/**
 * Encodes everything that depends only on the issuer. The certificate and the key must belong together, which `loadCa`
 * checks.
 */
export const makeLeafIssuer = (
  issuer: IssuerParts,
  signer: CaKey
): Result.Result<LeafIssuer, UnsupportedIssuer> =>
  Result.gen(function*() {
    const certificate = yield* Result.mapError(
      readCertificate(issuer.issuerCertDer),
      (fault) => new UnsupportedIssuer({ detail: `a certificate that is not decodable: ${fault.detail}` })
    )
    const identifier = element(0x80, certificate.subjectKeyIdentifier ?? keyIdentifier(certificate.spki))
    const shared = [
      extension(oid("2.5.29.35"), false, sequence(identifier)),
      ...issuerUrls(issuer.crlDistributionPoints, issuer.caIssuerUrls)
    ]
    return {
      build: (request: LeafRequest) =>
        Effect.suspend(() => {
          const { commonName } = request
          const { mayEncipher, policies, subject, usages } = request.content.encoded
          const attributes = commonName === undefined
            ? subject
            : [...subject, relativeName(OBJECT.commonName, text(Tag.utf8String, commonName))]
          return signCertificate(signer, {
            serial: request.serial,
            issuer: certificate.subject,
            notBefore: request.notBefore,
            notAfter: request.notAfter,
            subject: sequence(...attributes),
            spki: request.spki,
            extensions: [
              request.keyType === "rsa" && mayEncipher ? DIGITAL_SIGNATURE_AND_ENCIPHERMENT : DIGITAL_SIGNATURE,
              usages,
              subjectKeyIdentifier(request.spki),
              ...shared,
              ...policies,
              subjectAltName(request.names.map(dnsName), attributes.length === 0)
            ]
          })
        })
    }
  })

const HOUR = 3600

/** The validity of a leaf in epoch seconds. Both ends are inclusive. */
export interface ValidityWindow {
  readonly notBefore: number
  readonly notAfter: number
  /**
   * Whether rule 3 of docs/contribute/decisions/local-ca.md, "Validity", dropped the requested dates, because they left
   * no validity (`local_ca_requested_validity_discarded`).
   */
  readonly discardedRequest: boolean
}

/** Applies the rules of docs/contribute/decisions/local-ca.md, "Validity". Fractions of seconds are dropped. */
export const validityWindow = (input: {
  readonly now: number
  /**
   * When the client requested the dates. The client was then told the latest possible end, which replaces a requested
   * end that is later.
   */
  readonly orderedAt: number
  /** The lifetime that the kind of the certificate grants. */
  readonly validitySeconds: number
  readonly requestedNotBefore: number | undefined
  readonly requestedNotAfter: number | undefined
  readonly issuerNotBefore: number
  /** The earliest expiry among the issuer and all certificates above it. */
  readonly issuerNotAfter: number
}): Result.Result<ValidityWindow, "issuer_expired"> => {
  const now = Math.floor(input.now)
  const start = now - HOUR
  const end = now + input.validitySeconds
  const requestedStart = Math.max(start, Math.floor(input.requestedNotBefore ?? start))
  const requestedEnd = input.requestedNotAfter === undefined
    ? end
    : Math.min(end, Math.floor(input.orderedAt) + input.validitySeconds, Math.floor(input.requestedNotAfter))
  // No validity is left, either, if the requested end has passed in the meantime.
  const discardedRequest = requestedStart >= requestedEnd || requestedEnd <= now
  const notBefore = Math.max(discardedRequest ? start : requestedStart, input.issuerNotBefore)
  const notAfter = Math.min(discardedRequest ? end : requestedEnd, input.issuerNotAfter)
  return notBefore >= notAfter || now > input.issuerNotAfter
    ? Result.fail("issuer_expired")
    : Result.succeed({ notBefore, notAfter, discardedRequest })
}
