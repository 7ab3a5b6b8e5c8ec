import * as Result from "effect/Result"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { mlDsa } from "../keys/MlDsa.ts"
import { keyTypeOf } from "../keys/WeakKey.ts"
import type { Certificate } from "./Certificate.ts"
import { latin1 } from "./Certificate.ts"
import type { RawText } from "./CsrNames.ts"
import { nameIn, readText } from "./CsrNames.ts"
import { keyPurposes } from "./KeyPurpose.ts"

/**
 * Checks a leaf that another CA has made, because this CA may have copied anything from the request. The leaf must not
 * be a CA, must not allow uses other than TLS, and must not have an unchecked subject. The service's own leaves are
 * checked by `Lint.ts`, octet for octet.
 */

/** The failed check of a foreign leaf. */
export type ForeignCheck = "authority" | "usages" | "subject"

const BASIC_CONSTRAINTS = "2.5.29.19"
const KEY_USAGE = "2.5.29.15"
const EXTENDED_KEY_USAGE = "2.5.29.37"
const COMMON_NAME = "2.5.4.3"

// The bits of a KeyUsage. The first bit is the highest bit of the octet (RFC 5280 section 4.2.1.3).
const SIGNS = 0x80
const ENCIPHERS = 0x20
const AGREES = 0x08
const SIGNS_CERTIFICATES_OR_LISTS = 0x04 | 0x02
const SIGNS_CONTENT = 0x40

/** A request that a foreign CA answered. */
export interface ForeignRequest {
  /** The CSR as DER. */
  readonly csr: Uint8Array
  /**
   * Whether the leaf may be for clients alone, because the kind of the certificate is not the usual one and the CSR does
   * not ask for serverAuth.
   */
  readonly mayLackServerAuth: boolean
}

/** Returns the first failed check of a leaf, or undefined. `names` are in lower case. */
export const lintForeignLeaf = (
  leaf: Certificate,
  expected: ForeignRequest & { readonly names: ReadonlyArray<string> }
): ForeignCheck | undefined => {
  const extensions = new Map(leaf.extensions.map(({ oid, value }) => [oid, value]))
  // If an extension occurs twice, a reader may use either of them.
  if (extensions.size !== leaf.extensions.length) return "usages"
  if (mayIssue(extensions)) return "authority"
  if (!isForTls(extensions, expected.mayLackServerAuth) || !fitsKey(leaf.spki, extensions.get(KEY_USAGE))) {
    return "usages"
  }
  return hasOwnSubject(leaf, expected) ? undefined : "subject"
}

const mayIssue = (extensions: ReadonlyMap<string, Uint8Array>): boolean => {
  const constraints = extensions.get(BASIC_CONSTRAINTS)
  const isNoCa = constraints === undefined || Result.getOrElse(decode(constraints, readIsNoCa), () => false)
  const usage = extensions.get(KEY_USAGE)
  return !isNoCa || (usage !== undefined && ((usageBits(usage) ?? 0xff) & SIGNS_CERTIFICATES_OR_LISTS) !== 0)
}

const readIsNoCa = (reader: DerReader): boolean => {
  const fields = reader.enter(Tag.sequence)
  return fields.next !== Tag.boolean || !fields.boolean()
}

/** Returns the first octet of the bits in a KeyUsage, or undefined if the value is not a KeyUsage. */
const usageBits = (value: Uint8Array): number | undefined =>
  Result.getOrUndefined(decode(value, (reader) => reader.content(Tag.bitString)[1] ?? reader.fail("no bit is set")))

/**
 * Returns whether the extensions allow TLS. An absent extension restricts nothing, and many small CAs issue server
 * certificates without these extensions.
 */
const isForTls = (extensions: ReadonlyMap<string, Uint8Array>, mayLackServerAuth: boolean): boolean => {
  const usage = extensions.get(KEY_USAGE)
  if (usage !== undefined && ((usageBits(usage) ?? 0) & (SIGNS | ENCIPHERS | AGREES)) === 0) return false
  const purposes = extensions.get(EXTENDED_KEY_USAGE)
  if (purposes === undefined) return true
  const read = decode(purposes, (reader) => {
    const list = reader.enter(Tag.sequence)
    const found: Array<string> = []
    while (list.more) found.push(list.oid())
    return found
  })
  return Result.isSuccess(read) && read.success.length > 0 &&
    (mayLackServerAuth || read.success.includes(keyPurposes.server_auth)) &&
    read.success.every((purpose) => purpose === keyPurposes.server_auth || purpose === keyPurposes.client_auth)
}

/**
 * Returns whether the usage is one that the key can have: a key of ML-DSA can only sign (RFC 9881 section 5).
 */
const fitsKey = (spki: Uint8Array, usage: Uint8Array | undefined): boolean => {
  const type = keyTypeOf(spki)
  if (usage === undefined || !mlDsa.some(({ name }) => name === type)) return true
  const [, first = 0, second = 0] = Result.getOrElse(
    decode(usage, (reader) => reader.content(Tag.bitString)),
    () => new Uint8Array()
  )
  return (first & ~(SIGNS | SIGNS_CONTENT)) === 0 && second === 0
}

/**
 * Common names must be names of the order. Other attributes, such as an organisation, are statements of the CA itself.
 * But the CA may have copied an attribute from the request without a check, so an attribute that the client requested
 * is refused, unless the CA's own subject also has it.
 */
const hasOwnSubject = (
  leaf: Certificate,
  { csr, names }: { readonly csr: Uint8Array; readonly names: ReadonlyArray<string> }
): boolean => {
  const subject = decode(leaf.subject, readAttributes)
  const issuer = decode(leaf.issuer, readAttributes)
  const asked = decode(csr, readRequestedSubject)
  if (Result.isFailure(subject) || Result.isFailure(issuer) || Result.isFailure(asked)) return false
  const requested = new Set(asked.success.map(textOf))
  const borne = new Set(issuer.success.map(textOf))
  return subject.success.every((attribute) => {
    if (attribute.type === COMMON_NAME) return names.includes(nameIn(readText(attribute.raw) ?? ""))
    const text = textOf(attribute)
    return !requested.has(text) || borne.has(text)
  })
}

interface Attribute {
  readonly type: string
  /**
   * The value in lower case, with one character for each octet, so that values of different string types with the same
   * octets are equal.
   */
  readonly value: string
  readonly raw: RawText
}

const textOf = ({ type, value }: Attribute): string => `${type}=${value}`

const readAttributes = (reader: DerReader): ReadonlyArray<Attribute> => {
  const found: Array<Attribute> = []
  const name = reader.enter(Tag.sequence)
  while (name.more) {
    const relative = name.enter(Tag.set)
    while (relative.more) {
      const attribute = relative.enter(Tag.sequence)
      const type = attribute.oid()
      const tag = attribute.next
      const octets = attribute.content(tag)
      found.push({ type, value: latin1(octets).toLowerCase(), raw: { tag, octets } })
    }
  }
  return found
}

const readRequestedSubject = (whole: DerReader): ReadonlyArray<Attribute> => {
  const info = whole.enter(Tag.sequence).enter(Tag.sequence)
  info.skip(Tag.integer)
  return readAttributes(info)
}
