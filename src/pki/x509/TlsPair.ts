import type * as Effect from "effect/Effect"
import { isIP } from "node:net"
import { Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence, text } from "../asn1/DerWriter.ts"
import {
  DIGITAL_SIGNATURE,
  dnsName,
  type LeafNotSigned,
  relativeName,
  SERVER_AUTH,
  subjectAltName,
  subjectKeyIdentifier,
  type UnsupportedIssuer
} from "./Leaf.ts"
import type { CertificatePair } from "./SelfSigned.ts"
import { generateSelfSigned } from "./SelfSigned.ts"

/**
 * A self-signed certificate for the service's own TLS listener: ECDSA P-256, 3653 days from one hour ago, SAN the host
 * as dNSName or, for an address (an IPv6 one with or without brackets), as iPAddress. `now` is epoch seconds, `serial`
 * comes from `serialFrom`.
 */
export const generateTlsPair = (options: {
  readonly host: string
  readonly now: number
  readonly serial: Uint8Array
}): Effect.Effect<CertificatePair, LeafNotSigned | UnsupportedIssuer> => {
  const host = options.host.replace(/^\[(.*)\]$/, "$1")
  const name = isIP(host) === 0 ? dnsName(host) : element(IP_ADDRESS, addressOctets(host))
  return generateSelfSigned({
    ...options,
    keyType: "ecdsa-p256",
    // A CN holds at most 64 characters. The name is also the issuer, so it must not be empty.
    name: sequence(relativeName(oid("2.5.4.3"), text(Tag.utf8String, host.length <= 64 ? host : "acme-svc"))),
    extensions: (spki) => [DIGITAL_SIGNATURE, SERVER_AUTH, subjectKeyIdentifier(spki), subjectAltName([name], false)]
  })
}

const IP_ADDRESS = 0x87

/** The 4 or 16 octets of an address that `isIP` accepts. A zone is not part of an address in a certificate. */
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
