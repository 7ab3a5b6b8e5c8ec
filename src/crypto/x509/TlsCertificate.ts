import { X509Certificate } from "node:crypto"
import { sha256 } from "../Digest.ts"

const blocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The facts that are logged about the certificate of a TLS listener. The certificate itself is not checked. */
export interface TlsCertificate {
  /** The SHA-256 of the DER, in lower-case hexadecimal. */
  readonly fingerprint: string
  /** The earliest expiry among the certificate and its chain. */
  readonly notAfter: Date
  /** Whether subject and issuer are the same name. */
  readonly selfIssued: boolean
}

/**
 * Returns the certificates in a PEM text. Any text around them is ignored. Returns undefined if OpenSSL cannot read one
 * of the certificates.
 */
export const certificatesIn = (pem: string): ReadonlyArray<string> | undefined => {
  try {
    return (pem.match(blocks) ?? []).map((one) => new X509Certificate(one).toString())
  } catch {
    return undefined
  }
}

/**
 * Reads the first certificate in a PEM text; its chain follows it. Throws if OpenSSL finds no certificate, or cannot
 * read one of them.
 */
export const readTlsCertificate = (pem: string): TlsCertificate => {
  const { issuer, raw, subject, validTo } = new X509Certificate(pem)
  const all = pem.match(blocks) ?? []
  const ends = [validTo, ...all.map((one) => new X509Certificate(one).validTo)].map((end) => Date.parse(end))
  return { fingerprint: sha256(raw), notAfter: new Date(Math.min(...ends)), selfIssued: issuer === subject }
}
