import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { KeyObject } from "node:crypto"
import { verify, X509Certificate } from "node:crypto"
import type { DerReader } from "../asn1/DerReader.ts"
import { decode, Tag } from "../asn1/DerReader.ts"
import { splitPem } from "../asn1/Pem.ts"
import { mlDsa } from "../keys/MlDsa.ts"
import type { CrlEntry } from "./Crl.ts"
import { serialText } from "./Serial.ts"

/** Reads revocation lists that are not in the database, made by this service or by another CA (RFC 5280 section 5). */

/** A complete list. Fields of bytes are views into the DER. Times are epoch seconds. */
export interface RevocationList {
  readonly signed: Uint8Array
  /** The OID of the signature's algorithm. */
  readonly algorithm: string
  readonly signature: Uint8Array
  /** The CRL number; 0 if the list has no number. */
  readonly number: number
  readonly thisUpdate: number
  readonly entries: ReadonlyArray<CrlEntry>
}

/** The list cannot be used. `detail` is the end of a sentence that begins with the name of its file. */
export class ListUnusable extends Data.TaggedError("ListUnusable")<{ readonly detail: string }> {}

const unusable = (detail: string) => new ListUnusable({ detail })

/** The highest number that a list may have. Half of the exact integers are larger, so there is always a next number. */
export const largestNumber = 2 ** 52

/** The extensions of a list that do not change the meaning of its entries, or that are read below. */
const known = new Set(["2.5.29.35", "2.5.29.20", "2.5.29.18", "2.5.29.28", "2.5.29.46", "1.3.6.1.5.5.7.1.1"])

const DELTA = "it is a delta list (RFC 5280 section 5.2.4); a complete one is needed"
const INDIRECT =
  "it is an indirect list, which names certificates of other CAs (RFC 5280 section 5.2.5); a list of this "
  + "CA alone is needed"

const extensionsTag = 0xa0

/**
 * Reads the extensions of a list or of an entry. Passes to `read` the OID of each, whether it is critical, and its
 * value.
 */
const readExtensions = (
  list: DerReader,
  read: (id: string, isCritical: boolean, value: DerReader) => void
): void => {
  while (list.more) {
    const one = list.enter(Tag.sequence)
    const id = one.oid()
    const isCritical = one.next === Tag.boolean && one.boolean()
    read(id, isCritical, one.enter(Tag.octetString))
    one.end()
  }
}

const numberOf = (octets: Uint8Array): number => Number(`0x${Buffer.from(octets).toString("hex")}`)

/** Returns whether an issuingDistributionPoint marks the list as indirect. */
const isIndirect = (value: DerReader): boolean => {
  const point = value.enter(Tag.sequence)
  while (point.more) {
    if (point.next === 0x84) return point.content(0x84).some((octet) => octet !== 0)
    else point.skip()
  }
  return false
}

interface Head extends Omit<RevocationList, "entries"> {
  /** The entries, one after the other. */
  readonly revoked: Uint8Array
  /** Why the list must not be used although it is well formed. */
  readonly refusal: string | undefined
}

const readHead = (whole: DerReader): Head => {
  const outer = whole.enter(Tag.sequence)
  const fields = outer.fork().enter(Tag.sequence)
  const signed = outer.raw(Tag.sequence)
  const algorithm = outer.enter(Tag.sequence).oid()
  const signature = outer.bits()
  outer.end()
  if (fields.next === Tag.integer) fields.skip()
  const inner = fields.enter(Tag.sequence).oid()
  if (inner !== algorithm) fields.fail("the list names two algorithms of its signature")
  fields.skip(Tag.sequence)
  const thisUpdate = fields.time()
  if (fields.next === Tag.utcTime || fields.next === Tag.generalizedTime) fields.time()
  const revoked = fields.next === Tag.sequence ? fields.content(Tag.sequence) : new Uint8Array()
  let number = 0
  let refusal: string | undefined
  if (fields.more) {
    readExtensions(fields.enter(extensionsTag).enter(Tag.sequence), (id, isCritical, value) => {
      if (id === "2.5.29.20") number = numberOf(value.integer())
      else if (id === "2.5.29.27") refusal ??= DELTA
      else if (id === "2.5.29.28" && isIndirect(value)) refusal ??= INDIRECT
      else if (isCritical && !known.has(id)) refusal ??= `it has the critical extension ${id}, which is not known here`
    })
  }
  fields.end()
  if (!(number <= largestNumber)) refusal ??= `its number is above ${largestNumber}, so that no list could follow it`
  return { signed, algorithm, signature, number, thisUpdate, revoked, refusal }
}

/** Reads the entries and adds them to `entries`. Returns why the list must not be used, or undefined. */
const readEntries = (list: DerReader, entries: Array<CrlEntry>): string | undefined => {
  let refusal: string | undefined
  while (list.more) {
    const one = list.enter(Tag.sequence)
    const serial = serialText(one.integer())
    const revokedAt = one.time()
    let reason: number | undefined
    if (one.more) {
      readExtensions(one.enter(Tag.sequence), (id, isCritical, value) => {
        if (id === "2.5.29.21") reason = value.content(0x0a)[0]
        else if (id === "2.5.29.29") refusal ??= INDIRECT
        else if (isCritical) refusal ??= `an entry has the critical extension ${id}, which is not known here`
      })
    }
    one.end()
    if (reason === 8) refusal ??= DELTA // removeFromCRL occurs only in delta lists
    entries.push({ serial, revokedAt, reason })
  }
  return refusal
}

const entriesAtOnce = 2000

/** Returns where each part of the entries ends. Each part contains a fixed number of entries. */
const partsOf = (revoked: Uint8Array) =>
  decode(revoked, (list) => {
    const ends: Array<number> = []
    let at = 0
    for (let count = 1; list.more; count++) {
      at += list.raw(Tag.sequence).length
      if (count % entriesAtOnce === 0) ends.push(at)
    }
    return at === ends.at(-1) ? ends : [...ends, at]
  }, Number.POSITIVE_INFINITY)

const decoded = <A>(der: Uint8Array, read: (reader: DerReader) => A): Effect.Effect<A, ListUnusable> =>
  Effect.mapError(
    Effect.fromResult(decode(der, read, Number.POSITIVE_INFINITY)),
    ({ detail }) => unusable(`it is no revocation list in DER: ${detail}`)
  )

/**
 * Reads a complete list of one CA. A delta list, an indirect list, and a list with an unknown critical extension are
 * refused (RFC 5280 sections 5.2 and 5.3). The signature is not checked here. A long list is read in parts, so that
 * other work can run between these parts.
 */
export const readRevocationList = Effect.fnUntraced(function*(
  der: Uint8Array
): Effect.fn.Return<RevocationList, ListUnusable> {
  const { refusal, revoked, ...head } = yield* decoded(der, readHead)
  if (refusal !== undefined) return yield* unusable(refusal)
  const entries: Array<CrlEntry> = []
  let from = 0
  const ends = yield* Effect.mapError(
    Effect.fromResult(partsOf(revoked)),
    ({ detail }) => unusable(`it is no revocation list in DER: ${detail}`)
  )
  for (const end of ends) {
    const refused = yield* decoded(revoked.subarray(from, end), (list) => readEntries(list, entries))
    if (refused !== undefined) return yield* unusable(refused)
    from = end
    yield* Effect.yieldNow
  }
  return { ...head, entries }
})

/** For each signature algorithm, the kind of key and the digest (RFC 4055, RFC 5758, RFC 9881). */
const digests: { readonly [oid: string]: readonly [kind: string, digest: string | null] } = {
  "1.2.840.113549.1.1.11": ["rsa", "sha256"],
  "1.2.840.113549.1.1.12": ["rsa", "sha384"],
  "1.2.840.113549.1.1.13": ["rsa", "sha512"],
  "1.2.840.10045.4.3.2": ["ec", "sha256"],
  "1.2.840.10045.4.3.3": ["ec", "sha384"],
  "1.2.840.10045.4.3.4": ["ec", "sha512"],
  ...Object.fromEntries(mlDsa.map(({ name, oid }) => [oid, [name, null]] as const))
}

/** Refuses a list that was not signed with this key. Other work can run during the verification. */
export const verifyList = (
  { algorithm, signature, signed }: Pick<RevocationList, "algorithm" | "signature" | "signed">,
  key: KeyObject
): Effect.Effect<void, ListUnusable> => {
  const [kind, digest] = digests[algorithm] ?? []
  if (digest === undefined) return unusable(`its signature is of the algorithm ${algorithm}, which is not known here`)
  const foreign = unusable("it does not verify under the key of this CA: another CA has signed it, or it was changed")
  if (kind !== key.asymmetricKeyType) return foreign
  return Effect.callback((resume) =>
    verify(
      digest,
      signed,
      key,
      signature,
      (cause, isGood) => resume(cause === null && isGood ? Effect.void : foreign)
    )
  )
}

/** Returns the key of a CA, from the DER of its certificate. */
export const publicKeyOf = (certificate: Uint8Array): KeyObject => new X509Certificate(certificate).publicKey

/** Returns the DER of a list in a file. The file contains either the DER itself or one block of PEM. */
export const listInFile = (octets: Buffer): Result.Result<Uint8Array, ListUnusable> => {
  if (octets[0] === Tag.sequence) return Result.succeed(octets)
  const blocks = Result.getOrElse(splitPem(octets.toString("latin1"), "before"), () => [])
  const [list, another] = blocks
  return list === undefined || another !== undefined || list.label !== "X509 CRL"
    ? Result.fail(unusable("it is neither DER nor one block X509 CRL of PEM"))
    : Result.succeed(list.der)
}
