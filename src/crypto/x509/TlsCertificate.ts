import { X509Certificate } from "node:crypto"
import { sha256 } from "../Digest.ts"

const blocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/** The facts that are logged about a certificate that is only served. Nothing in it is checked. */
export interface TlsCertificate {
  /** Lower-case hexadecimal SHA-256 of its DER. */
  readonly fingerprint: string
  /** When it ends, or when a certificate of its chain does, if that is earlier. */
  readonly notAfter: Date
  /** Whether its subject and issuer are the same name. */
  readonly selfIssued: boolean
}

/** The certificates of a PEM text, whatever stands around them; undefined if OpenSSL cannot read one. */
export const certificatesIn = (pem: string): ReadonlyArray<string> | undefined => {
  try {
    return (pem.match(blocks) ?? []).map((one) => new X509Certificate(one).toString())
  } catch {
    return undefined
  }
}

/** The first certificate of a PEM text, whose chain is behind it. Throws if OpenSSL finds none, or cannot read one. */
export const readTlsCertificate = (pem: string): TlsCertificate => {
  const { issuer, raw, subject, validTo } = new X509Certificate(pem)
  const all = pem.match(blocks) ?? []
  const ends = [validTo, ...all.map((one) => new X509Certificate(one).validTo)].map((end) => Date.parse(end))
  return { fingerprint: sha256(raw), notAfter: new Date(Math.min(...ends)), selfIssued: issuer === subject }
}
