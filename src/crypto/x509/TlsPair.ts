import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto"
import { isIP } from "node:net"
import { Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence, text } from "../asn1/DerWriter.ts"
import { splitPem } from "../asn1/Pem.ts"
import type { NotSigned, UnsupportedIssuer } from "./CaKey.ts"
import { keyPurposes } from "./KeyPurpose.ts"
import { DIGITAL_SIGNATURE, dnsName, subjectAltName, subjectKeyIdentifier } from "./Leaf.ts"
import { extendedKeyUsage } from "./LeafContent.ts"
import { relativeName } from "./Part.ts"
import type { CertificatePair, SelfSignedFields } from "./SelfSigned.ts"
import { generateSelfSigned, signSelf } from "./SelfSigned.ts"

/*
 * Makes the key and the certificate of a TLS listener if its operator provides none
 * (docs/contribute/decisions/listeners.md, "A pair of its own").
 */

/**
 * The organization in the subject of a certificate that was made here. The certificates of earlier versions have no
 * organization. They are valid for ten years, and their operators renew them.
 */
const MARK = "acme-svc listener pair"

/**
 * Apple's systems refuse a validity of more than 825 days. Verifiers that apply the rules for public CAs to private CAs
 * too refuse more than 398 days.
 */
const VALIDITY_DAYS = 397

/**
 * The host is the only name in the certificate. It may be an IPv6 address, with or without brackets. `now` is in epoch
 * seconds.
 */
interface TlsPairRequest {
  readonly host: string
  readonly now: number
  /** The serial, from `serialFrom`. */
  readonly serial: Uint8Array
}

const fieldsOf = ({ now, serial, ...request }: TlsPairRequest): SelfSignedFields => {
  const host = request.host.replace(/^\[(.*)\]$/, "$1")
  const san = isIP(host) === 0 ? dnsName(host) : element(IP_ADDRESS, addressOctets(host))
  return {
    now,
    serial,
    validityDays: VALIDITY_DAYS,
    name: sequence(
      relativeName(oid("2.5.4.10"), text(Tag.utf8String, MARK)),
      // A CN may have at most 64 characters.
      relativeName(oid("2.5.4.3"), text(Tag.utf8String, host.length <= 64 ? host : "acme-svc")),
      // OpenSSL finds only one trusted certificate for each subject name. So a certificate and its successor need
      // different subject names if clients should trust both.
      relativeName(oid("2.5.4.5"), text(Tag.printableString, Buffer.from(serial).toString("hex")))
    ),
    extensions: (
      spki
    ) => [
      DIGITAL_SIGNATURE,
      extendedKeyUsage([keyPurposes.server_auth]),
      subjectKeyIdentifier(spki),
      subjectAltName([san], false)
    ]
  }
}

/**
 * Generates an ECDSA P-256 key and a self-signed certificate for the service's own TLS listener. The certificate is
 * valid for 397 days, from one hour ago. Its SAN is the host as dNSName or, for an address, as iPAddress.
 */
export const generateTlsPair = (
  request: TlsPairRequest
): Effect.Effect<CertificatePair, NotSigned | UnsupportedIssuer> =>
  generateSelfSigned({ ...fieldsOf(request), keyType: "ecdsa-p256" })

/** Makes a new certificate, as PEM, for the key of a pair that was made here. */
export const renewTlsCertificate = (
  key: string,
  request: TlsPairRequest
): Effect.Effect<string, NotSigned | UnsupportedIssuer> =>
  Effect.suspend(() => {
    const privateKey = createPrivateKey(key)
    const spki = createPublicKey(privateKey).export({ type: "spki", format: "der" })
    return signSelf({ privateKey, spki }, fieldsOf(request))
  })

/** Returns whether a PEM text is exactly the certificate of a pair that was made here. */
export const isOwnTlsCertificate = (text: string): boolean => {
  const blocks = Result.getOrElse(splitPem(text, "nothing"), () => [])
  return blocks.length === 1 && Result.getOrElse(
    Result.try(() => {
      const certificate = new X509Certificate(text)
      return certificate.subject.split("\n").includes(`O=${MARK}`) && certificate.verify(certificate.publicKey)
    }),
    () => false
  )
}

const IP_ADDRESS = 0x87

/** Returns the 4 or 16 octets of an address that `isIP` accepts. In a certificate, an address has no zone. */
const addressOctets = (address: string): Uint8Array => {
  if (isIP(address) === 4) return Uint8Array.from(address.split(".").map(Number))
  const [head = "", tail] = address.replace(/%.*$/, "").split("::")
  const before = groupOctets(head)
  const after = groupOctets(tail ?? "")
  const octets = new Uint8Array(16)
  octets.set(before)
  octets.set(after, 16 - after.length)
  return octets
}

const groupOctets = (groups: string): ReadonlyArray<number> =>
  groups.split(":").filter((group) => group !== "").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
