import * as Result from "effect/Result"
import { X509Certificate } from "node:crypto"
import { decode, sameBytes, Tag } from "../asn1/DerReader.ts"
import { isSame } from "../Digest.ts"
import { keyAuthorizationDigest } from "../jose/KeyAuthorization.ts"
import type { Certificate } from "./Certificate.ts"
import { DNS_NAME, octetString, readCertificate, readNames, SUBJECT_ALT_NAME } from "./Certificate.ts"

/** The faults of a validation certificate (RFC 8737 section 3; docs/reference/protocol.md, "tls-alpn-01"). */
export type AlpnCertificateFault =
  | "certificate_undecodable"
  | "not_self_signed"
  | "san_absent"
  | "san_mismatch"
  | "extension_absent"
  | "extension_repeated"
  | "extension_not_critical"
  | "extension_undecodable"
  | "extension_length"
  | "extension_mismatch"

/** A fault. For `san_mismatch`, `names` are the names in the certificate, unchanged; otherwise there are none. */
export interface FoundFault {
  readonly fault: AlpnCertificateFault
  readonly names: ReadonlyArray<string>
}

/** The OID of id-pe-acmeIdentifier. The drafts used a different OID, `.30.1`. */
const ACME_IDENTIFIER = "1.3.6.1.5.5.7.1.31"

/**
 * Returns the first fault of the certificate that a server presented for a name, or undefined if there is no fault. The
 * certificate must be self-signed. It must have one SAN with only that name, and one critical acmeIdentifier with the
 * digest of the key authorization.
 */
export const alpnCertificateFault = (
  der: Uint8Array,
  expected: { readonly name: string; readonly keyAuthorization: string }
): FoundFault | undefined => {
  const found = (fault: AlpnCertificateFault, names: ReadonlyArray<string> = []): FoundFault => ({ fault, names })
  const read = readCertificate(der)
  if (Result.isFailure(read)) return found("certificate_undecodable")
  const certificate = read.success
  if (!isSelfSigned(der, certificate)) return found("not_self_signed")
  const names = namesOf(certificate)
  if (names === undefined) return found("san_absent")
  if (names.length !== 1 || names[0]?.toLowerCase() !== expected.name) return found("san_mismatch", names)
  const fault = digestFault(certificate, expected.keyAuthorization)
  return fault === undefined ? undefined : found(fault)
}

const isSelfSigned = (der: Uint8Array, { issuer, subject }: Certificate): boolean =>
  sameBytes(issuer, subject) &&
  Result.getOrElse(
    Result.try(() => {
      const certificate = new X509Certificate(der)
      return certificate.verify(certificate.publicKey)
    }),
    () => false
  )

/**
 * Returns the DNS names of the SAN, or undefined if there is no SAN. The result is empty if the SAN also has names of
 * other types, or if there are two SANs.
 */
const namesOf = ({ extensions }: Certificate): ReadonlyArray<string> | undefined => {
  const [san, another] = extensions.filter(({ oid }) => oid === SUBJECT_ALT_NAME)
  if (san === undefined) return undefined
  const names = decode(san.value, (reader) => readNames(reader.enter(Tag.sequence), DNS_NAME))
  return another === undefined && Result.isSuccess(names) ? names.success : []
}

const digestFault = ({ extensions }: Certificate, keyAuthorization: string): AlpnCertificateFault | undefined => {
  const [extension, another] = extensions.filter(({ oid }) => oid === ACME_IDENTIFIER)
  if (extension === undefined) return "extension_absent"
  if (another !== undefined) return "extension_repeated"
  if (!extension.critical) return "extension_not_critical"
  const digest = decode(extension.value, octetString)
  if (Result.isFailure(digest)) return "extension_undecodable"
  const wanted = keyAuthorizationDigest(keyAuthorization)
  if (digest.success.length !== wanted.length) return "extension_length"
  return isSame(digest.success, wanted) ? undefined : "extension_mismatch"
}
