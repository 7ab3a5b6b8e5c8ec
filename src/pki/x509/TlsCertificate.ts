import { X509Certificate } from "node:crypto"
import { sha256 } from "../Digest.ts"

/** What is told of a certificate that is only served: nothing in it is judged. */
export interface TlsCertificate {
  /** Lower-case hexadecimal SHA-256 of its DER. */
  readonly fingerprint: string
  readonly notAfter: Date
  /** It bears the name of its own issuer. */
  readonly selfIssued: boolean
}

/** The first certificate of a PEM text; throws where OpenSSL finds none. */
export const readTlsCertificate = (pem: string): TlsCertificate => {
  const { issuer, raw, subject, validTo } = new X509Certificate(pem)
  return { fingerprint: sha256(raw), notAfter: new Date(validTo), selfIssued: issuer === subject }
}
