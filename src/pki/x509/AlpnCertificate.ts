import * as Result from "effect/Result"
import { X509Certificate } from "node:crypto"
import { decode, sameBytes, Tag } from "../asn1/DerReader.ts"
import { isSame } from "../Digest.ts"
import { keyAuthorizationDigest } from "../jose/KeyAuthorization.ts"
import type { Certificate } from "./Certificate.ts"
import { DNS_NAME, octetString, readCertificate, readNames, SUBJECT_ALT_NAME } from "./Certificate.ts"

/** The faults of a validation certificate (RFC 8737 section 3; docs/protocol.md, "tls-alpn-01"). */
export type AlpnCertificateFault =
  | "certificate_undecodable"
  | "not_self_signed"
  | "san_mismatch"
  | "extension_mismatch"

/** id-pe-acmeIdentifier. The drafts used another one, `.30.1`. */
const ACME_IDENTIFIER = "1.3.6.1.5.5.7.1.31"

/**
 * The first fault of the certificate shown for a name, or undefined. The certificate must be self-signed, have one SAN
 * with only that name, and one critical acmeIdentifier with the digest of the key authorization.
 */
export const alpnCertificateFault = (
  der: Uint8Array,
  expected: { readonly name: string; readonly keyAuthorization: string }
): AlpnCertificateFault | undefined => {
  const read = readCertificate(der)
  if (Result.isFailure(read)) return "certificate_undecodable"
  const certificate = read.success
  if (!isSelfSigned(der, certificate)) return "not_self_signed"
  if (!isNamed(certificate, expected.name)) return "san_mismatch"
  return holdsDigest(certificate, expected.keyAuthorization) ? undefined : "extension_mismatch"
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

const theOnly = ({ extensions }: Certificate, oid: string) => {
  const [found, another] = extensions.filter((extension) => extension.oid === oid)
  return another === undefined ? found : undefined
}

const isNamed = (certificate: Certificate, name: string): boolean => {
  const san = theOnly(certificate, SUBJECT_ALT_NAME)
  if (san === undefined) return false
  const names = decode(san.value, (reader) => readNames(reader.enter(Tag.sequence), DNS_NAME))
  return Result.isSuccess(names) && names.success.length === 1 && names.success[0]?.toLowerCase() === name
}

const holdsDigest = (certificate: Certificate, keyAuthorization: string): boolean => {
  const extension = theOnly(certificate, ACME_IDENTIFIER)
  if (extension === undefined || !extension.critical) return false
  const digest = decode(extension.value, octetString)
  return Result.isSuccess(digest) && isSame(digest.success, keyAuthorizationDigest(keyAuthorization))
}
