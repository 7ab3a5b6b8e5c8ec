import * as Result from "effect/Result"
import { encodePem } from "../asn1/Pem.ts"
import { sha256 } from "../Digest.ts"
import { basicConstraintsOf } from "./CaForm.ts"
import { readCertificate } from "./Certificate.ts"
import { decodeChain } from "./Decoded.ts"
import { readNameConstraints } from "./NameConstraints.ts"

/** What people compare when a CA is made. Times are epoch seconds, and octets are lower-case hexadecimal. */
export interface CaFacts {
  readonly subject: string
  readonly serial: string
  readonly keyType: string
  readonly notBefore: number
  readonly notAfter: number
  /** Undefined if the CA may issue certificates of CAs to any depth. */
  readonly pathLength: number | undefined
  /** The permitted DNS names. Undefined if all names are permitted. */
  readonly permitted: ReadonlyArray<string> | undefined
  readonly sha256: string
  /** The SHA-256 of the SubjectPublicKeyInfo. */
  readonly keySha256: string
}

/** Returns the facts of a CA certificate (DER), or undefined if it cannot be read. */
export const caFacts = (der: Uint8Array): CaFacts | undefined => {
  const read = Result.getOrUndefined(readCertificate(der))
  const [decoded] = decodeChain(encodePem("CERTIFICATE", der))
  if (read === undefined || decoded === undefined) return undefined
  const constraints = read.extensions.find(({ oid }) => oid === "2.5.29.30")
  const names = constraints === undefined ? undefined : Result.getOrUndefined(readNameConstraints(constraints.value))
  const { keyType, notAfter, notBefore, serial, sha256: fingerprint, subject } = decoded
  return {
    subject,
    serial,
    keyType,
    notBefore,
    notAfter,
    pathLength: basicConstraintsOf(read).pathLength,
    permitted: names?.permitted,
    sha256: fingerprint,
    keySha256: sha256(read.spki)
  }
}
