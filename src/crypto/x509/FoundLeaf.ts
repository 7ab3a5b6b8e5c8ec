import * as Result from "effect/Result"
import { createPublicKey, X509Certificate } from "node:crypto"
import { sha256 } from "../Digest.ts"
import { foldSerial } from "./Serial.ts"

/** A certificate that a signer has made, and that may break the rules. So OpenSSL reads it, not the strict reader. */
export interface FoundLeaf {
  /** The certificate as DER. */
  readonly leaf: Uint8Array
  /** The SHA-256 of the DER, in lower-case hexadecimal. */
  readonly fingerprint: string
  /** The serial in lower-case hexadecimal, without leading zero octets. */
  readonly serial: string
  /** The expiry in epoch seconds. */
  readonly notAfter: number
  /** The DNS names in the certificate. */
  readonly names: ReadonlyArray<string>
}

const block = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----([^-]*)-----END/g

/** Reads a DER certificate. Returns undefined if OpenSSL cannot read it. */
export const readLeaf = (der: Uint8Array): FoundLeaf | undefined =>
  Result.getOrUndefined(Result.try(() => factsOf(new X509Certificate(der))))

const factsOf = (certificate: X509Certificate): FoundLeaf => ({
  leaf: certificate.raw,
  fingerprint: sha256(certificate.raw),
  serial: foldSerial(certificate.serialNumber),
  notAfter: Math.floor(certificate.validToDate.getTime() / 1000),
  names: (certificate.subjectAltName ?? "").split(", ").flatMap((name) =>
    name.startsWith("DNS:") ? [name.slice(4)] : []
  )
})

/**
 * Finds the certificate for this key (DER SubjectPublicKeyInfo) anywhere in the output of a signer: after other text,
 * in a broken bundle, or after its issuer. Certificates for other keys, such as those of CAs, are ignored.
 */
export const findLeaf = (given: string, spki: Uint8Array): FoundLeaf | undefined => {
  const key = Result.getOrUndefined(
    Result.try(() => createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" }))
  )
  if (key === undefined) return undefined
  for (const [, body = ""] of given.matchAll(block)) {
    const found = Result.try(() => new X509Certificate(Buffer.from(body, "base64")))
    const isOfKey = Result.map(found, (certificate) => certificate.publicKey.equals(key))
    if (Result.isSuccess(found) && Result.getOrElse(isOfKey, () => false)) return factsOf(found.success)
  }
  return undefined
}
