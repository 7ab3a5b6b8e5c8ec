import * as Result from "effect/Result"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { shownCharacter, shownName } from "../Character.ts"
import { DNS_NAME, latin1, SUBJECT_ALT_NAME } from "./Certificate.ts"
import type { CsrRefused } from "./CsrRefused.ts"
import { refuse } from "./CsrRefused.ts"

/** The names in a certification request: its subjectAltName and its common names. */

/** A character string with its tag, not decoded. */
export interface RawText {
  readonly tag: number
  readonly octets: Uint8Array
}

/**
 * Matches the allowed octets of a DNS name, including wildcard and underscore. The finer syntax need not be checked
 * again, because the names must be exactly those of the order.
 */
const DNS_OCTETS = /^[a-z0-9_*.-]{1,253}$/

/**
 * Returns a name in lower case, without the trailing dot. Only the letters of ASCII change: Unicode would also turn
 * U+212A, the Kelvin sign, into a k.
 */
const normalise = (name: string): string => {
  const lower = name.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
  return lower.endsWith(".") ? lower.slice(0, -1) : lower
}

const BASIC_CONSTRAINTS = "2.5.29.19"
const EXTENDED_KEY_USAGE = "2.5.29.37"

/**
 * Returns whether the value of a basicConstraints is `cA FALSE`, either written out, or left out as DER requires. A
 * certificate without this extension means the same.
 */
const isNoCa = (value: Uint8Array): boolean => ["3000", "3003010100"].includes(Buffer.from(value).toString("hex"))

/** The contents of the extension requests of a CSR. */
export interface Requested {
  /**
   * The dNSNames of the SAN: normalised, without duplicates, in the order of their first occurrence. Empty if there is
   * no SAN.
   */
  readonly names: ReadonlyArray<string>
  /** The OIDs of the other extensions, without duplicates. */
  readonly extensions: ReadonlyArray<string>
  /** The value of each extKeyUsage. There is more than one only if the CSR is faulty. */
  readonly usages: ReadonlyArray<Uint8Array>
}

/** Reads the extension requests of a CSR. */
export const readRequested = (requests: ReadonlyArray<Uint8Array>): Result.Result<Requested, CsrRefused> => {
  const [request] = requests
  if (request === undefined) return Result.succeed({ names: [], extensions: [], usages: [] })
  if (requests.length > 1) return refuse("san_extra", "The CSR holds more than one extension request.")
  const read = decode(request, (extensions) => {
    const found: Array<ReadonlyArray<RawText>> = []
    const others = new Set<string>()
    const usages: Array<Uint8Array> = []
    while (extensions.more) {
      const extension = extensions.enter(Tag.sequence)
      const oid = extension.oid()
      if (extension.next === Tag.boolean) extension.boolean()
      const value = extension.content(Tag.octetString)
      extension.end()
      if (oid === SUBJECT_ALT_NAME) {
        found.push(Result.getOrElse(decode(value, readGeneralNames), (fault) => extension.fail(fault.detail)))
      } else if (oid !== BASIC_CONSTRAINTS || !isNoCa(value)) others.add(oid)
      if (oid === EXTENDED_KEY_USAGE) usages.push(value)
    }
    return { found, others, usages }
  })
  if (Result.isFailure(read)) {
    return refuse("undecodable", `The requested extensions are not decodable: ${read.failure.detail}.`)
  }
  const { found, others, usages } = read.success
  const [san] = found
  if (found.length > 1) return refuse("san_extra", "The CSR requests more than one subjectAltName.")
  const names = new Set<string>()
  for (const { octets, tag } of san ?? []) {
    if (tag !== DNS_NAME) {
      const kind = otherNames[tag & 0x1f] ?? "something else"
      return refuse("san_type", `The subjectAltName holds ${kind}; certificates are for DNS names alone.`)
    }
    const name = normalise(latin1(octets))
    if (!DNS_OCTETS.test(name)) return refuse("san_type", `The subjectAltName holds ${faultOf(name)}.`)
    names.add(name)
  }
  return Result.succeed({ names: [...names], extensions: [...others], usages })
}

/** The other choices of GeneralName (RFC 5280 section 4.2.1.6), by the number of their tag. */
const otherNames: { readonly [number: number]: string } = {
  0: "an otherName",
  1: "a mail address",
  3: "an X.400 address",
  4: "a directory name",
  5: "an EDI party name",
  6: "a URI",
  7: "an IP address",
  8: "a registered ID"
}

/** Returns a phrase that says why a text is not a DNS name, and that shows the text. */
const faultOf = (name: string): string => {
  if (name === "") return "an empty name"
  const strange = /[^a-z0-9_*.-]/u.exec(name)?.[0]
  const fault = strange === undefined ? "a name of more than 253 octets" : `a DNS name with ${shownCharacter(strange)}`
  return `${fault}: ${shownName(name)}`
}

const readGeneralNames = (reader: DerReader): ReadonlyArray<RawText> => {
  const names: Array<RawText> = []
  const inner = reader.enter(Tag.sequence)
  while (inner.more) {
    const tag = inner.next
    names.push({ tag, octets: inner.content(tag) })
  }
  return names
}

// This matches letters of any script, because other readers of the CSR may map them to ASCII. UTS 46 defines the
// additional dots.
const READS_AS_NAME = /^[\p{L}\p{M}\p{N}_*-]+(?:[.\u3002\uff0e\uff61][\p{L}\p{M}\p{N}_*-]+)+[.\u3002\uff0e\uff61]?$/u
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f\ufffe\uffff]/

/**
 * Returns free text in the normal form of a DNS name. The same form is used for certificates and requests. Only spaces
 * are removed at the ends: a text with another blank there, such as U+00A0 or U+FEFF, is not the name.
 */
export const nameIn = (text: string): string => normalise(text.replaceAll(/^ +| +$/g, ""))

/**
 * Returns every common name as text (`subjectNames`), and those that look like a DNS name with a dot (`commonNames`).
 * The latter are compared with the names of the order.
 */
export const readCommonNames = (
  raw: ReadonlyArray<RawText>
): Result.Result<
  { readonly commonNames: ReadonlyArray<string>; readonly subjectNames: ReadonlyArray<string> },
  CsrRefused
> => {
  const commonNames: Array<string> = []
  const subjectNames: Array<string> = []
  for (const value of raw) {
    const text = readText(value)
    if (text === undefined || CONTROL.test(text)) {
      return refuse("common_name", "A common name of the CSR cannot be read as text.")
    }
    subjectNames.push(text)
    const name = nameIn(text)
    if (!READS_AS_NAME.test(name)) continue
    if (!DNS_OCTETS.test(name)) return refuse("common_name", `A common name of the CSR holds ${faultOf(name)}.`)
    commonNames.push(name)
  }
  return Result.succeed({ commonNames, subjectNames })
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Returns the text of a DirectoryString, or of another string type that occurs in practice. Returns undefined if the
 * octets do not fit the type.
 */
export const readText = ({ octets, tag }: RawText): string | undefined => {
  switch (tag) {
    case Tag.utf8String:
      return Result.getOrUndefined(Result.try(() => utf8.decode(octets)))
    case Tag.numericString:
    case Tag.printableString:
    case Tag.ia5String:
    case Tag.visibleString:
      return octets.every((octet) => octet < 0x80) ? latin1(octets) : undefined
    case Tag.teletexString:
      return latin1(octets)
    case Tag.bmpString:
      return readUnits(octets, 2)
    case Tag.universalString:
      return readUnits(octets, 4)
    default:
      return undefined
  }
}

const readUnits = (octets: Uint8Array, width: number): string | undefined => {
  if (octets.length % width !== 0) return undefined
  let text = ""
  for (let at = 0; at < octets.length; at += width) {
    let point = 0
    for (let i = 0; i < width; i++) point = point * 256 + (octets[at + i] ?? 0)
    if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return undefined
    text += String.fromCodePoint(point)
  }
  return text
}
