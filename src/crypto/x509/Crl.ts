import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { DerFault, DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { bits, element, oid, sequence, time, unsigned } from "../asn1/DerWriter.ts"
import type { CaKey, NotSigned } from "./CaKey.ts"
import { extension } from "./Part.ts"
import { serialText } from "./Serial.ts"

/** Certificate revocation lists (RFC 5280 section 5; docs/contribute/decisions/revocation-lists.md). */

/** One revoked certificate. */
export interface CrlEntry {
  /** The serial in lower-case hexadecimal, without leading zero octets. */
  readonly serial: string
  /** The date of the revocation in epoch seconds. */
  readonly revokedAt: number
  /** The reason code of RFC 5280, or undefined if the list states no reason. */
  readonly reason: number | undefined
}

/** The contents of a list that is to be signed. Times are epoch seconds. */
export interface CrlRequest {
  readonly number: number
  readonly thisUpdate: number
  readonly nextUpdate: number
  /** The entries, made by {@link encodeEntries}, in the order of the list. */
  readonly entries: ReadonlyArray<Uint8Array>
}

/** Signs the lists of one CA. */
export type CrlSigner = (request: CrlRequest) => Effect.Effect<Uint8Array, NotSigned>

const hexOctets = (serial: string): Uint8Array => Buffer.from(serial.length % 2 === 0 ? serial : `0${serial}`, "hex")

const enumerated = 0x0a

// Code 0 means the same as no reason, and code 8 occurs only in delta lists, so neither is encoded.
const reasons = new Map(
  [1, 2, 3, 4, 5, 6, 9, 10].map((code) => [
    code,
    sequence(extension(oid("2.5.29.21"), false, element(enumerated, Uint8Array.of(code))))
  ])
)

/**
 * Returns the entries as DER, concatenated. A revocation after `latest`, the date of the list, gets this date, because a
 * list has only what happened up to its date (RFC 5280 sections 5.1.2.4 and 5.1.2.6).
 */
export const encodeEntries = (entries: ReadonlyArray<CrlEntry>, latest = Number.POSITIVE_INFINITY): Uint8Array =>
  Buffer.concat(entries.map(({ reason, revokedAt, serial }) => {
    const stated = reason === undefined ? undefined : reasons.get(reason)
    const fields = [unsigned(hexOctets(serial)), time(Math.min(revokedAt, latest))]
    return stated === undefined ? sequence(...fields) : sequence(...fields, stated)
  }))

const extensionsTag = 0xa0
const VERSION_2 = unsigned(Uint8Array.of(1))
const AUTHORITY_KEY_IDENTIFIER = oid("2.5.29.35")
const CRL_NUMBER = oid("2.5.29.20")

const numberExtension = (number: number): Uint8Array =>
  extension(CRL_NUMBER, false, unsigned(hexOctets(number.toString(16))))

/**
 * Returns a signer that signs lists in the same way as the issuer signs leaves. The certificate and the key must belong
 * together. This is not checked here.
 */
export const makeCrlSigner = (issuer: {
  /** The name of the issuer, as a DER Name. */
  readonly subject: Uint8Array
  /** The issuer's own subject key identifier. */
  readonly keyIdentifier: Uint8Array
}, key: CaKey): CrlSigner => {
  const authority = extension(AUTHORITY_KEY_IDENTIFIER, false, sequence(element(0x80, issuer.keyIdentifier)))
  return ({ entries, nextUpdate, number, thisUpdate }) => {
    const isEmpty = entries.every(({ length }) => length === 0)
    const signed = sequence(
      VERSION_2,
      key.algorithm,
      issuer.subject,
      time(thisUpdate),
      time(nextUpdate),
      ...(isEmpty ? [] : [sequence(...entries)]), // absent if there are no entries (section 5.1.2.6)
      element(extensionsTag, sequence(authority, numberExtension(number)))
    )
    return Effect.map(key.sign(signed), (signature) => sequence(signed, key.algorithm, bits(signature)))
  }
}

/**
 * Moves to the entries in a list of this service (RFC 5280 section 5.1.2). If the next element is not a SEQUENCE, the
 * list has no entries.
 */
const atEntries = (whole: DerReader) => {
  const list = whole.enter(Tag.sequence).enter(Tag.sequence)
  list.skip(Tag.integer)
  list.skip(Tag.sequence)
  list.skip(Tag.sequence)
  list.time()
  list.time()
  return list
}

/** Returns the serials in a list of this service. */
export const listedSerials = (der: Uint8Array): Result.Result<ReadonlySet<string>, DerFault> =>
  decode(der, (whole) => {
    const list = atEntries(whole)
    const serials = new Set<string>()
    if (list.next === Tag.sequence) {
      const entries = list.enter(Tag.sequence)
      while (entries.more) {
        serials.add(serialText(entries.enter(Tag.sequence).integer()))
      }
    }
    return serials
  }, Number.POSITIVE_INFINITY)

/** Returns the serials in a list of this service, each as the octets of its INTEGER in latin1. */
const serialOctets = (der: Uint8Array): ReadonlySet<string> => {
  const read = decode(der, (whole) => {
    const list = atEntries(whole)
    return list.next === Tag.sequence ? list.content(Tag.sequence) : new Uint8Array()
  }, Number.POSITIVE_INFINITY)
  const serials = new Set<string>()
  const entries = Result.isSuccess(read) ? read.success : new Uint8Array()
  const octets = Buffer.from(entries.buffer, entries.byteOffset, entries.byteLength)
  // An entry that this service writes is shorter than 128 octets, so each length is one octet.
  for (let at = 0; at + 3 < octets.length; at += 2 + (octets[at + 1] ?? 0)) {
    serials.add(octets.toString("latin1", at + 4, at + 4 + (octets[at + 3] ?? 0)))
  }
  return serials
}

/**
 * Returns whether a list lacks an entry of another list. Both are lists of this service. Only serials are compared.
 * This is done for each new list, so it is several times as fast as {@link listedSerials}. A list that cannot be read
 * counts as empty.
 */
export const lacksEntries = (list: Uint8Array, other: Uint8Array): boolean => {
  const listed = serialOctets(list)
  for (const serial of serialOctets(other)) if (!listed.has(serial)) return true
  return false
}

/** Returns the head of a list of this service: the key identifier of its signer, and its number. */
export const listHead = (
  der: Uint8Array
): Result.Result<{ readonly keyIdentifier: Uint8Array; readonly number: number }, DerFault> =>
  decode(der, (whole) => {
    const list = whole.enter(Tag.sequence).enter(Tag.sequence)
    while (list.next !== extensionsTag) list.skip()
    const extensions = list.enter(extensionsTag).enter(Tag.sequence)
    let [keyIdentifier, number] = [new Uint8Array(), 0]
    while (extensions.more) {
      const one = extensions.enter(Tag.sequence)
      const id = one.oid()
      if (one.next === Tag.boolean) one.skip()
      const value = one.enter(Tag.octetString)
      if (id === "2.5.29.35") keyIdentifier = Uint8Array.from(value.enter(Tag.sequence).content(0x80))
      if (id === "2.5.29.20") number = Number(`0x${Buffer.from(value.integer()).toString("hex")}`)
    }
    return { keyIdentifier, number }
  }, Number.POSITIVE_INFINITY)

/** Returns whether octets are a DER revocation list, whatever its version and CA. */
export const isRevocationList = (der: Uint8Array): boolean =>
  Result.isSuccess(decode(der, (whole) => {
    const list = whole.enter(Tag.sequence)
    const signed = list.enter(Tag.sequence)
    if (signed.next === Tag.integer) signed.skip()
    signed.skip(Tag.sequence)
    signed.skip(Tag.sequence)
    signed.time()
    while (signed.more) signed.skip()
    list.skip(Tag.sequence)
    list.skip(Tag.bitString)
    list.end()
  }))
