import { X509Certificate } from "node:crypto"
import { sha256 } from "../Digest.ts"

/** The facts that are logged about a certificate that is only served. Nothing in it is checked. */
export interface TlsCertificate {
  /** Lower-case hexadecimal SHA-256 of its DER. */
  readonly fingerprint: string
  readonly notAfter: Date
  /** Whether its subject and issuer are the same name. */
  readonly selfIssued: boolean
}

/** The first certificate of a PEM text. Throws if OpenSSL finds none. */
export const readTlsCertificate = (pem: string): TlsCertificate => {
  const { issuer, raw, subject, validTo } = new X509Certificate(pem)
  return { fingerprint: sha256(raw), notAfter: new Date(validTo), selfIssued: issuer === subject }
}
