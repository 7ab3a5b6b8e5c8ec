import * as Result from "effect/Result"
import { decode, Tag } from "../asn1/DerReader.ts"
import type { Certificate } from "./Certificate.ts"
import { issued, readCertificate, SUBJECT_KEY_IDENTIFIER } from "./Certificate.ts"
import { readPurposes } from "./RequestedExtensions.ts"

/**
 * Finds what a CA certificate has or lacks against RFC 5280. Some verifiers accept such a CA, and others refuse every
 * leaf below it: `openssl verify -x509_strict` and Python from 3.13 on if a part is missing, all common ones if they do
 * not know a critical extension, and Go from 1.23 on if the serial number is negative. This is done rarely, so its speed
 * does not matter.
 */

/** A flaw of a certificate (RFC 5280 sections 4.2.1.3, 4.2.1.2, 4.2.1.1, 4.2.1.9, 4.2 and 4.1.2.2). */
export type CaFlaw =
  | "key_usage_missing"
  | "subject_key_identifier_missing"
  | "authority_key_identifier_missing"
  | "basic_constraints_not_critical"
  | "critical_extension_unknown"
  | "serial_number_negative"

/**
 * The extensions that may be critical, because OpenSSL, GnuTLS and Go know them: keyUsage, subjectAltName,
 * basicConstraints, nameConstraints, cRLDistributionPoints, certificatePolicies, policyMappings, policyConstraints,
 * extKeyUsage and inhibitAnyPolicy.
 */
const known = new Set([15, 17, 19, 30, 31, 32, 33, 36, 37, 54].map((last) => `2.5.29.${last}`))

/** Returns whether an authorityKeyIdentifier contains a keyIdentifier. */
const hasKeyIdentifier = (value: Uint8Array | undefined): boolean =>
  value !== undefined &&
  Result.getOrElse(decode(value, (reader) => reader.enter(Tag.sequence).next === 0x80), () => false)

/** Returns the flaws of a CA certificate (DER). A self-signed root needs no authorityKeyIdentifier. */
export const caFlaws = (der: Uint8Array): ReadonlyArray<CaFlaw> => {
  const read = readCertificate(der)
  if (Result.isFailure(read)) return []
  const { extensions, serial: [sign = 0] } = read.success
  const of = (oid: string) => extensions.find((one) => one.oid === oid)
  const flaws: ReadonlyArray<readonly [CaFlaw, boolean]> = [
    ["key_usage_missing", of("2.5.29.15") === undefined],
    ["subject_key_identifier_missing", of(SUBJECT_KEY_IDENTIFIER) === undefined],
    ["authority_key_identifier_missing", !hasKeyIdentifier(of("2.5.29.35")?.value) && !issued(der, der)],
    ["basic_constraints_not_critical", of("2.5.29.19")?.critical === false],
    ["critical_extension_unknown", extensions.some(({ critical, oid }) => critical && !known.has(oid))],
    ["serial_number_negative", sign >= 0x80]
  ]
  return flaws.flatMap(([flaw, isSo]) => isSo ? [flaw] : [])
}

/** What the basicConstraints of a certificate say. Without this extension, the certificate is not that of a CA. */
export interface BasicConstraints {
  readonly isCa: boolean
  /** The pathLenConstraint. Undefined if there is none. */
  readonly pathLength: number | undefined
}

/** Reads the basicConstraints of a certificate. If they cannot be read, the certificate is not that of a CA. */
export const basicConstraintsOf = ({ extensions }: Pick<Certificate, "extensions">): BasicConstraints => {
  const constraints = extensions.find(({ oid }) => oid === "2.5.29.19")
  return Result.getOrElse(
    decode(constraints?.value ?? new Uint8Array(), (reader) => {
      const fields = reader.enter(Tag.sequence)
      const isCa = fields.next === Tag.boolean && fields.boolean()
      const pathLength = fields.more ? fields.small() : undefined
      fields.end()
      return { isCa, pathLength }
    }),
    () => ({ isCa: false, pathLength: undefined })
  )
}

const anyPurpose = "2.5.29.37.0"

/**
 * Returns the purposes (OIDs) in the extendedKeyUsage of a certificate, or none if it cannot be read. The getter of the
 * runtime is not used, because an extension that it cannot read makes the next operation of OpenSSL fail.
 */
const permittedBy = (der: Uint8Array): ReadonlyArray<string> | undefined => {
  const read = readCertificate(der)
  const usage = Result.isSuccess(read) ? read.success.extensions.find(({ oid }) => oid === "2.5.29.37") : undefined
  return usage && Result.getOrElse(decode(usage.value, readPurposes), () => [])
}

/**
 * Returns the first of these CA certificates (DER) that does not permit a purpose, which is an OID. An extendedKeyUsage
 * of a CA limits what is below it. RFC 5280 section 4.2.1.12 does not say this, but OpenSSL, Go and browsers do it.
 */
export const forbidding = (certificates: ReadonlyArray<Uint8Array>, purpose: string): Uint8Array | undefined =>
  certificates.find((der) => {
    const permitted = permittedBy(der)
    return permitted !== undefined && !permitted.includes(purpose) && !permitted.includes(anyPurpose)
  })
