import * as Data from "effect/Data"
import * as Result from "effect/Result"

/**
 * Reads strict DER (X.690 section 10), for the few structures that are read very often: the CSR of a request, and the
 * leaf that answers it (docs/contribute/decisions/x509.md). It refuses everything that BER allows but DER does not:
 * indefinite and padded lengths, padded integers, booleans other than 00 and FF, set unused bits, constructed strings,
 * long-form tags.
 */

/** The bytes are not the expected DER. `detail` names the rule, and never quotes the content. */
export class DerFault extends Data.TaggedError("DerFault")<{
  readonly detail: string
  /** The offset of an octet in the bytes that were given to {@link decode}. */
  readonly at: number
}> {}

/** The tags, by name. A context tag is `0x80 + n`, and a constructed one `0xa0 + n`. */
export const Tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  visibleString: 0x1a,
  universalString: 0x1c,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31
} as const

const MAX_DEPTH = 32

/**
 * The highest number of elements that are read from one document. An element that is read twice counts twice. A
 * certificate with a hundred names has a few hundred elements.
 */
const mostElements = 10_000

/**
 * The highest number of octets of an OID that is read as text. A single arc may have any size: an arc that is a UUID
 * (X.667) has up to 19 octets.
 */
const longestOid = 128

/** Returns the arc of an OID whose septets are the octets from `start` to `last`. Seven septets are exact as a number. */
const arcOf = (octets: Uint8Array, start: number, last: number): number | bigint => {
  if (last - start < 7) {
    let arc = 0
    for (let at = start; at <= last; at++) arc = arc * 128 + ((octets[at] ?? 0) & 0x7f)
    return arc
  }
  let arc = 0n
  for (let at = start; at <= last; at++) arc = arc * 128n + BigInt((octets[at] ?? 0) & 0x7f)
  return arc
}

/**
 * A position in DER. Each method reads an element of the type in its name, and throws {@link DerFault} if the next
 * element has another type. Only {@link decode} makes readers. This function catches the faults, so that no exception
 * leaves this file. Results are views, not copies.
 */
export class DerReader {
  readonly #bytes: Uint8Array
  readonly #end: number
  #at: number
  #contentAt = 0
  /** How many elements may still be read. All readers of a document share this number. */
  readonly #budget: { left: number }

  constructor(bytes: Uint8Array, at: number, end: number, budget: { left: number }) {
    this.#bytes = bytes
    this.#budget = budget
    this.#at = at
    this.#end = end
  }

  /** The tag of the next element, or 0 at the end. */
  get next(): number {
    return this.#at < this.#end ? this.#bytes[this.#at] ?? 0 : 0
  }

  get more(): boolean {
    return this.#at < this.#end
  }

  fail(detail: string): never {
    throw new DerFault({ detail, at: this.#at })
  }

  /** Moves past the next element, and returns its offset. Afterwards `#contentAt` is the offset of its content. */
  #advance(tag: number | undefined): number {
    const bytes = this.#bytes
    const start = this.#at
    if (this.#budget.left-- <= 0) return this.fail("there are too many elements")
    if (start + 2 > this.#end) return this.fail("an element is missing or cut short")
    const found = bytes[start] ?? 0
    if (tag !== undefined && found !== tag) return this.fail("an element has another type than expected")
    if (found === 0 || (found & 0x1f) === 0x1f) return this.fail("a tag is not allowed here")
    let length = bytes[start + 1] ?? 0
    let at = start + 2
    if (length >= 0x80) {
      const octets = length & 0x7f
      if (octets === 0) return this.fail("a length is indefinite")
      if (octets > 4 || at + octets > this.#end) return this.fail("a length is out of bounds")
      length = 0
      for (let i = 0; i < octets; i++) length = length * 256 + (bytes[at + i] ?? 0)
      if (length < 0x80 || length < 2 ** (8 * (octets - 1))) return this.fail("a length is not minimal")
      at += octets
    }
    if (length > this.#end - at) return this.fail("a length is out of bounds")
    this.#contentAt = at
    this.#at = at + length
    return start
  }

  /** Returns a second reader at the same position, so that the same octets can be read twice. */
  fork(): DerReader {
    return new DerReader(this.#bytes, this.#at, this.#end, this.#budget)
  }

  /** Returns a reader for the content of the next element. */
  enter(tag: number): DerReader {
    this.#advance(tag)
    return new DerReader(this.#bytes, this.#contentAt, this.#at, this.#budget)
  }

  /** Returns the octets in the content of the next element. */
  content(tag: number): Uint8Array {
    this.#advance(tag)
    return this.#bytes.subarray(this.#contentAt, this.#at)
  }

  /** Returns the whole next element with its header. If no `tag` is given, the element may have any type. */
  raw(tag?: number): Uint8Array {
    const start = this.#advance(tag)
    return this.#bytes.subarray(start, this.#at)
  }

  skip(tag?: number): void {
    this.#advance(tag)
  }

  /** Returns the octets in the content of an INTEGER: two's complement, as short as possible. */
  integer(): Uint8Array {
    const octets = this.content(Tag.integer)
    const first = octets[0]
    if (first === undefined) return this.fail("an integer is empty")
    const second = octets[1]
    if (second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80))) {
      return this.fail("an integer is not minimal")
    }
    return octets
  }

  /** Returns the magnitude of an INTEGER that is greater than zero, without a leading zero octet. */
  positive(): Uint8Array {
    const octets = this.integer()
    const first = octets[0] ?? 0
    if (first >= 0x80) return this.fail("an integer is negative")
    if (first !== 0) return octets
    return octets.length === 1 ? this.fail("an integer is zero") : octets.subarray(1)
  }

  /** Returns an INTEGER from 0 to 65535. */
  small(): number {
    const octets = this.integer()
    let value = 0
    for (const octet of octets) value = value * 256 + octet
    return octets.length > 3 || (octets[0] ?? 0) >= 0x80 || value > 0xffff
      ? this.fail("an integer is out of range")
      : value
  }

  boolean(): boolean {
    const octets = this.content(Tag.boolean)
    if (octets.length === 1 && octets[0] === 0xff) return true
    return octets.length === 1 && octets[0] === 0 ? false : this.fail("a boolean is neither 00 nor FF")
  }

  null(): void {
    if (this.content(Tag.null).length !== 0) this.fail("a null is not empty")
  }

  /** Returns an OBJECT IDENTIFIER in dotted form. */
  oid(): string {
    const octets = this.content(Tag.oid)
    if (octets.length === 0 || (octets[octets.length - 1] ?? 0) >= 0x80) return this.fail("an OID is cut short")
    if (octets.length > longestOid) return this.fail("an OID is too long")
    let text = ""
    let start = 0
    for (let at = 0; at < octets.length; at++) {
      const octet = octets[at] ?? 0
      if (at === start && octet === 0x80) return this.fail("an OID arc is not minimal")
      if (octet >= 0x80) continue
      const arc = arcOf(octets, start, at)
      if (start > 0) text += `.${arc}`
      else text = arc < 80 ? `${arc < 40 ? 0 : 1}.${Number(arc) % 40}` : `2.${BigInt(arc) - 80n}`
      start = at + 1
    }
    return text
  }

  /** Returns the octets of a BIT STRING that ends on an octet boundary. */
  bits(): Uint8Array {
    const octets = this.content(Tag.bitString)
    return octets[0] === 0 ? octets.subarray(1) : this.fail("a bit string does not end on an octet boundary")
  }

  /**
   * Returns the epoch seconds of a Time. The Time must have the form that RFC 5280 section 4.1.2.5 requires: UTCTime up
   * to 2049, GeneralizedTime from 2050, with seconds, without a fraction, with `Z`.
   */
  time(): number {
    const general = this.next === Tag.generalizedTime
    const octets = this.content(general ? Tag.generalizedTime : Tag.utcTime)
    const digits = octets.length - 1
    if (digits !== (general ? 14 : 12) || octets[digits] !== 0x5a) return this.fail(NO_TIME)
    for (let i = 0; i < digits; i++) if (!isDigit(octets[i] ?? 0)) return this.fail(NO_TIME)
    const pair = (end: number) => ((octets[digits - end] ?? 0) - 48) * 10 + (octets[digits - end + 1] ?? 0) - 48
    const short = pair(12)
    const year = general ? pair(14) * 100 + short : short + (short >= 50 ? 1900 : 2000)
    if (general && year >= 1950 && year < 2050) return this.fail("a time before 2050 is not a UTCTime")
    const [month, day, hour, minute, second] = [pair(10), pair(8), pair(6), pair(4), pair(2)]
    if (hour > 23 || minute > 59 || second > 59) return this.fail(NO_TIME)
    // This is only calendar arithmetic, and does not read the clock.
    const at = new Date(0)
    at.setUTCFullYear(year, month - 1, day)
    // A date such as 30 February would become a date in March, so it is refused.
    if (at.getUTCDate() !== day || at.getUTCMonth() !== month - 1) return this.fail(NO_TIME)
    return at.getTime() / 1000 + hour * 3600 + minute * 60 + second
  }

  /** Fails if any octets are left. */
  end(): void {
    if (this.#at !== this.#end) this.fail("there are trailing bytes")
  }

  /**
   * Reads all remaining elements, at every depth. Refuses everything that is not DER, even in parts that no other code
   * reads. The content of an OCTET STRING may be anything, so it is not read.
   */
  verify(depth = 0): void {
    if (depth > MAX_DEPTH) this.fail("elements are nested too deeply")
    while (this.more) {
      const tag = this.next
      if (tag < 0x40) {
        if (tag === Tag.boolean) this.boolean()
        else if (tag === Tag.integer) this.integer()
        else if (tag === Tag.null) this.null()
        else if (tag === Tag.oid) verifyOid(this)
        else if (tag === Tag.bitString) verifyBits(this)
        else if (tag === Tag.sequence || tag === Tag.set) this.enter(tag).verify(depth + 1)
        else if ((tag & 0x20) === 0 && tag !== 0x10 && tag !== 0x11) this.skip()
        else this.fail("a primitive type is constructed, or the other way round")
      } else if ((tag & 0x20) === 0) this.skip()
      else this.enter(tag).verify(depth + 1)
    }
  }

  /**
   * Checks, without moving, that exactly one element is left, and {@link verify}s it. Octets after the element are
   * reported as such, even if they are not DER.
   */
  verifyOnly(): void {
    const after = this.fork()
    after.skip()
    after.end()
    this.fork().verify()
  }
}

const NO_TIME = "a time does not have the form that RFC 5280 requires"

const isDigit = (octet: number): boolean => octet >= 48 && octet <= 57

const verifyOid = (reader: DerReader): void => {
  const octets = reader.content(Tag.oid)
  if (octets.length === 0 || (octets[octets.length - 1] ?? 0) >= 0x80) reader.fail("an OID is cut short")
  for (let i = 0; i < octets.length; i++) {
    if (octets[i] === 0x80 && (i === 0 || (octets[i - 1] ?? 0) < 0x80)) reader.fail("an OID arc is not minimal")
  }
}

const verifyBits = (reader: DerReader): void => {
  const octets = reader.content(Tag.bitString)
  const unused = octets[0]
  if (unused === undefined || unused > 7 || (unused > 0 && octets.length === 1)) reader.fail("a bit string is broken")
  else if (((octets[octets.length - 1] ?? 0) & ((1 << unused) - 1)) !== 0) reader.fail("unused bits are set")
}

/** Runs `read` over `bytes`. `read` must read all bytes, and may read at most `elements` elements. */
export const decode = <A>(
  bytes: Uint8Array,
  read: (reader: DerReader) => A,
  elements: number = mostElements
): Result.Result<A, DerFault> => {
  // A view of a Buffer is also a Buffer, and costs several times as much as a view of a plain array.
  const plain = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
  const reader = new DerReader(plain, 0, plain.length, { left: elements })
  try {
    const value = read(reader)
    reader.end()
    return Result.succeed(value)
  } catch (cause) {
    if (cause instanceof DerFault) return Result.fail(cause)
    throw cause
  }
}

/** Returns whether two byte strings are equal, octet for octet. */
export const sameBytes = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && Buffer.compare(a, b) === 0
