import * as Data from "effect/Data"
import * as Result from "effect/Result"

/* The wire form of DNS messages (RFC 1035 section 4), as far as updates (RFC 2136) and their signatures need them. */

/** The octets are not a DNS message, or a name has no wire form. */
export class DnsFault extends Data.TaggedError("DnsFault")<{ readonly detail: string }> {}

/** Numbers of record types and classes. */
export const rr = { soa: 6, txt: 16, tsig: 250, classIn: 1, classNone: 254, classAny: 255 } as const

/** RCODEs with their mnemonics (RFC 1035, RFC 2136, RFC 8945). */
const rcodes = new Map([
  [0, "NOERROR"],
  [1, "FORMERR"],
  [2, "SERVFAIL"],
  [3, "NXDOMAIN"],
  [4, "NOTIMP"],
  [5, "REFUSED"],
  [6, "YXDOMAIN"],
  [7, "YXRRSET"],
  [8, "NXRRSET"],
  [9, "NOTAUTH"],
  [10, "NOTZONE"],
  [16, "BADSIG"],
  [17, "BADKEY"],
  [18, "BADTIME"],
  [22, "BADTRUNC"]
])

/** Returns the mnemonic of an RCODE. */
export const rcodeName = (code: number): string => rcodes.get(code) ?? `RCODE ${code}`

export const uint16 = (value: number): Buffer => {
  const octets = Buffer.alloc(2)
  octets.writeUInt16BE(value)
  return octets
}

export const uint32 = (value: number): Buffer => {
  const octets = Buffer.alloc(4)
  octets.writeUInt32BE(value)
  return octets
}

/**
 * Returns the wire form of a name: without compression, and in lower case, as signatures require. The final dot is
 * optional.
 */
export const encodeName = (name: string): Result.Result<Buffer, DnsFault> => {
  const bare = name.replace(/\.$/, "").toLowerCase()
  const labels = bare === "" ? [] : bare.split(".").map((label) => Buffer.from(label, "latin1"))
  if (labels.some(({ length }) => length === 0 || length > 63)) {
    return Result.fail(new DnsFault({ detail: `${name} has a label that is empty or longer than 63 octets` }))
  }
  const octets = Buffer.concat([...labels.flatMap((label) => [Buffer.of(label.length), label]), Buffer.of(0)])
  return octets.length > 255
    ? Result.fail(new DnsFault({ detail: `${name} is longer than 255 octets` }))
    : Result.succeed(octets)
}

/** A resource record, with the offsets of its parts in the message. */
export interface RecordAt {
  /** The offset at which the record begins. */
  readonly start: number
  /** The name in lower case, with a final dot. */
  readonly name: string
  readonly type: number
  readonly class: number
  readonly ttl: number
  readonly rdata: Buffer
  /** The offset at which the RDATA begins. It is needed to read compressed names in the RDATA. */
  readonly rdataAt: number
}

/** A parsed message. */
export interface DnsMessage {
  readonly id: number
  readonly isAnswer: boolean
  readonly opcode: number
  readonly isTruncated: boolean
  readonly rcode: number
  /** The records of the additional section. */
  readonly additional: ReadonlyArray<RecordAt>
}

const short = () => new DnsFault({ detail: "the message ends early" })

/**
 * Reads the name at an offset. Also returns the offset at which the name ends. A compression pointer may only point
 * backwards, so that the loop ends.
 */
export const readName = (octets: Buffer, start: number): { readonly name: string; readonly end: number } => {
  const labels: Array<string> = []
  let [at, end, length] = [start, -1, 0]
  for (;;) {
    const size = octets[at]
    if (size === undefined) throw short()
    if (size === 0) return { name: `${labels.join(".")}.`, end: end < 0 ? at + 1 : end }
    if ((size & 0xc0) === 0xc0) {
      const target = (size & 0x3f) << 8 | (octets[at + 1] ?? 0xffff)
      if (end < 0) end = at + 2
      if (target >= at || target < 12) throw new DnsFault({ detail: "a compressed name points nowhere" })
      at = target
      continue
    }
    if (size > 63) throw new DnsFault({ detail: "a label of an unknown kind" })
    if (at + 1 + size > octets.length) throw short()
    length += size + 1
    if (length > 255) throw new DnsFault({ detail: "a name longer than 255 octets" })
    labels.push(octets.toString("latin1", at + 1, at + 1 + size).toLowerCase())
    at += size + 1
  }
}

const readRecord = (octets: Buffer, start: number): { readonly record: RecordAt; readonly end: number } => {
  const { end, name } = readName(octets, start)
  if (end + 10 > octets.length) throw short()
  const rdataAt = end + 10
  const next = rdataAt + octets.readUInt16BE(end + 8)
  if (next > octets.length) throw short()
  return {
    record: {
      start,
      name,
      type: octets.readUInt16BE(end),
      class: octets.readUInt16BE(end + 2),
      ttl: octets.readUInt32BE(end + 4),
      rdata: octets.subarray(rdataAt, next),
      rdataAt
    },
    end: next
  }
}

/** Runs a reader over octets. If the reader throws a fault, this fault becomes the failure. */
export const reading = <A>(read: () => A): Result.Result<A, DnsFault> =>
  Result.try({
    try: read,
    catch: (cause) => cause instanceof DnsFault ? cause : new DnsFault({ detail: "the message cannot be read" })
  })

/** Parses a message. All octets must belong to the message. */
export const readMessage = (octets: Buffer): Result.Result<DnsMessage, DnsFault> =>
  reading(() => {
    if (octets.length < 12) throw short()
    const flags = octets.readUInt16BE(2)
    const [questions = 0, answers = 0, authorities = 0, additionals = 0] = [4, 6, 8, 10].map((at) =>
      octets.readUInt16BE(at)
    )
    let at = 12
    for (let index = 0; index < questions; index++) at = readName(octets, at).end + 4
    for (let index = 0; index < answers + authorities; index++) at = readRecord(octets, at).end
    const additional: Array<RecordAt> = []
    for (let index = 0; index < additionals; index++) {
      const { end, record } = readRecord(octets, at)
      additional.push(record)
      at = end
    }
    if (at !== octets.length) throw new DnsFault({ detail: "the message has octets after its end" })
    return {
      id: octets.readUInt16BE(0),
      isAnswer: (flags & 0x8000) !== 0,
      opcode: flags >> 11 & 0xf,
      isTruncated: (flags & 0x0200) !== 0,
      rcode: flags & 0xf,
      additional
    }
  })
