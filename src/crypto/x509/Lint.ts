import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, sameBytes, Tag } from "../asn1/DerReader.ts"
import { sha256Octets } from "../Digest.ts"
import { keyTypeOf } from "../keys/WeakKey.ts"
import type { Certificate } from "./Certificate.ts"
import {
  DNS_NAME,
  isSigned,
  octetString,
  only,
  readCertificate,
  readNames,
  schemeOf,
  SUBJECT_ALT_NAME,
  SUBJECT_KEY_IDENTIFIER,
  URI
} from "./Certificate.ts"
import type { LeafRequest } from "./Leaf.ts"

/**
 * Checks a leaf of this service after it was made and before it is stored (docs/contribute/decisions/local-ca.md,
 * "Lint"). The check reads the finished DER, and has its own expected values, so that it does not repeat a mistake of
 * `Leaf.ts`.
 */

/** The failed check of a leaf: the field `check` of `local_ca_lint_failed`. */
export type LintCheck =
  | "der"
  | "version"
  | "algorithm"
  | "signature"
  | "serial"
  | "issuer"
  | "validity"
  | "subject"
  | "key"
  | "extensions"
  | "key_usage"
  | "extended_key_usage"
  | "certificate_policies"
  | "subject_key_identifier"
  | "authority_key_identifier"
  | "crl_distribution_points"
  | "authority_info_access"
  | "san"

/** The issuer against which a leaf is checked: a `CaMaterial`, and the two lists of URLs in the configuration. */
export interface LintIssuer {
  readonly publicKey: KeyObject
  /** The name of the issuer, as a DER Name. */
  readonly subject: Uint8Array
  readonly keyIdentifier: Uint8Array
  readonly notBefore: number
  /** The earliest expiry among the issuer and all certificates above it. */
  readonly notAfter: number
  readonly crlDistributionPoints: ReadonlyArray<string>
  readonly caIssuerUrls: ReadonlyArray<string>
}

/**
 * Makes the checks of a leaf, cheapest first. Returns the first failed check, or undefined. The leaf was made from
 * `request`.
 */
export const lintLeaf = (
  der: Uint8Array,
  expected: { readonly issuer: LintIssuer; readonly request: LeafRequest }
): LintCheck | undefined => {
  const { issuer, request } = expected
  const read = readCertificate(der)
  if (Result.isFailure(read)) return "der"
  const leaf = read.success
  if (leaf.extensions.some(({ spelledDefault }) => spelledDefault)) return "der"
  if (leaf.version !== 2) return "version"
  const first = leaf.serial[0] ?? 0
  if (leaf.serial.length !== 16 || first >> 6 !== 1 || !sameBytes(leaf.serial, request.serial)) return "serial"
  if (!sameBytes(leaf.issuer, issuer.subject)) return "issuer"
  if (leaf.notBefore !== request.notBefore || leaf.notAfter !== request.notAfter) return "validity"
  if (leaf.notBefore < issuer.notBefore || leaf.notAfter > issuer.notAfter) return "validity"
  if (leaf.notBefore > leaf.notAfter) return "validity"
  if (!isSubject(leaf.subject, request)) return "subject"
  if (!sameBytes(leaf.spki, request.spki)) return "key"
  const failed = lintExtensions(leaf, issuer, request)
  if (failed !== undefined) return failed
  const scheme = schemeOf(issuer.publicKey)
  if (scheme === undefined || hex(leaf.outerAlgorithm) !== scheme.algorithm) return "algorithm"
  if (!sameBytes(leaf.innerAlgorithm, leaf.outerAlgorithm)) return "algorithm"
  return isSigned(leaf, issuer.publicKey, scheme.digest) ? undefined : "signature"
}

const hex = (octets: Uint8Array): string => Buffer.from(octets.buffer, octets.byteOffset, octets.length).toString("hex")

const isSubject = (subject: Uint8Array, { commonName, content, names }: LeafRequest): boolean => {
  if (commonName === undefined && content.subject.length === 0) return hex(subject) === "3000"
  if (commonName !== undefined && (commonName.length > 64 || !names.includes(commonName))) return false
  const wanted = content.subject.map(({ type, value }) => `${type}=${value}`)
  if (commonName !== undefined) wanted.push(`2.5.4.3=${commonName}`)
  return isList(decode(subject, readAttributes), wanted)
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Returns the attributes of a subject in order, each of them alone in its relative name. */
const readAttributes = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const relatives = reader.enter(Tag.sequence)
  while (relatives.more) {
    only(relatives.enter(Tag.set), (attributes) =>
      only(attributes.enter(Tag.sequence), (attribute) => {
        const type = attribute.oid()
        const octets = attribute.content(type === "2.5.4.6" ? Tag.printableString : Tag.utf8String)
        found.push(`${type}=${utf8.decode(octets)}`)
      }))
  }
  return found
}

const readOids = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) found.push(list.oid())
  return found
}

const readPolicies = (reader: DerReader): ReadonlyArray<string> => {
  const found: Array<string> = []
  const list = reader.enter(Tag.sequence)
  while (list.more) found.push(only(list.enter(Tag.sequence), (information) => information.oid()))
  return found
}

/** The purpose that must stand alone, in a critical extension (RFC 3161 section 2.3). */
const TIME_STAMPING = "1.3.6.1.5.5.7.3.8"
/** The purposes whose keys only sign (RFC 5280 section 4.2.1.12): code signing and time stamping. */
const SIGNING_ALONE: ReadonlyArray<string> = ["1.3.6.1.5.5.7.3.3", TIME_STAMPING]

const isList = (found: Result.Result<ReadonlyArray<string>, DerFault>, wanted: ReadonlyArray<string>): boolean =>
  Result.isSuccess(found) && found.success.length === wanted.length &&
  found.success.every((name, i) => name === wanted[i])

const lintExtensions = (leaf: Certificate, issuer: LintIssuer, request: LeafRequest): LintCheck | undefined => {
  const left = new Map(leaf.extensions.map((extension) => [extension.oid, extension]))
  if (left.size !== leaf.extensions.length) return "extensions"
  /**
   * Removes the extension from `left`. Returns its value if the extension is as critical as `critical` says, and
   * otherwise an empty value.
   */
  const take = (oid: string, critical: boolean): Uint8Array => {
    const found = left.get(oid)
    left.delete(oid)
    return found !== undefined && found.critical === critical ? found.value : new Uint8Array()
  }
  const { policies, usages } = request.content
  // Only the leaf of an RSA key has keyEncipherment, unless all its purposes only sign. For ML-DSA, RFC 9881 section 5
  // forbids this usage.
  const isForSigning = usages.every((one) => SIGNING_ALONE.includes(one))
  const usage = keyTypeOf(leaf.spki) === "rsa" && !isForSigning ? "030205a0" : "03020780"
  if (hex(take("2.5.29.15", true)) !== usage) return "key_usage"
  const isTimeStamping = usages.join() === TIME_STAMPING
  if (!isList(decode(take("2.5.29.37", isTimeStamping), readOids), usages)) return "extended_key_usage"
  if (policies.length > 0 && !isList(decode(take("2.5.29.32", false), readPolicies), policies)) {
    return "certificate_policies"
  }
  const own = decode(take(SUBJECT_KEY_IDENTIFIER, false), octetString)
  if (!Result.isSuccess(own) || !sameBytes(own.success, rfc7093(request.spki))) return "subject_key_identifier"
  const authority = decode(
    take("2.5.29.35", false),
    (reader) => only(reader.enter(Tag.sequence), (inner) => inner.content(0x80))
  )
  if (!Result.isSuccess(authority) || !sameBytes(authority.success, issuer.keyIdentifier)) {
    return "authority_key_identifier"
  }
  const san = decode(
    take(SUBJECT_ALT_NAME, request.commonName === undefined && request.content.subject.length === 0),
    (reader) => readNames(reader.enter(Tag.sequence), DNS_NAME)
  )
  if (request.names.length === 0 || !isList(san, request.names)) return "san"
  if (issuer.crlDistributionPoints.length > 0) {
    const points = decode(
      take("2.5.29.31", false),
      (reader) =>
        only(
          reader.enter(Tag.sequence),
          (list) =>
            only(
              list.enter(Tag.sequence),
              (point) => only(point.enter(0xa0), (name) => readNames(name.enter(0xa0), URI))
            )
        )
    )
    if (!isList(points, issuer.crlDistributionPoints)) return "crl_distribution_points"
  }
  if (issuer.caIssuerUrls.length > 0) {
    const urls = decode(take("1.3.6.1.5.5.7.1.1", false), (reader) => {
      const found: Array<string> = []
      const list = reader.enter(Tag.sequence)
      while (list.more) {
        const entry = list.enter(Tag.sequence)
        if (entry.oid() !== "1.3.6.1.5.5.7.48.2") entry.fail("an access method is not caIssuers")
        found.push(...readNames(entry, URI))
      }
      return found
    })
    if (!isList(urls, issuer.caIssuerUrls)) return "authority_info_access"
  }
  return left.size === 0 ? undefined : "extensions"
}

const rfc7093 = (spki: Uint8Array): Uint8Array => {
  const key = decode(spki, (reader) => {
    const info = reader.enter(Tag.sequence)
    info.skip()
    return info.bits()
  })
  return Result.isSuccess(key) ? sha256Octets(key.success).subarray(0, 20) : new Uint8Array()
}
