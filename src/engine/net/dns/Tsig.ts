import * as Result from "effect/Result"
import { hmac, isSame } from "../../../crypto/Digest.ts"
import type { DnsMessage } from "./DnsMessage.ts"
import { DnsFault, encodeName, rcodeName, reading, readMessage, readName, rr, uint16, uint32 } from "./DnsMessage.ts"

/* Transaction signatures (RFC 8945): every message is signed, and its answer must be signed too. */

/** The names of the algorithms in the configuration. */
export type TsigAlgorithm = "hmac-sha256" | "hmac-sha384" | "hmac-sha512"

/** A key that this service shares with the server. */
export interface TsigKey {
  /** The name of the key, a DNS name. */
  readonly name: string
  readonly algorithm: TsigAlgorithm
  readonly secret: Uint8Array
}

/** The largest accepted difference between the clocks of the two sides, in seconds. */
const fudge = 300

const digests = { "hmac-sha256": "sha256", "hmac-sha384": "sha384", "hmac-sha512": "sha512" } as const

const uint48 = (value: number): Buffer => {
  const octets = Buffer.alloc(6)
  octets.writeUIntBE(value, 0, 6)
  return octets
}

interface Variables {
  readonly name: Buffer
  readonly algorithm: Buffer
  readonly time: number
  readonly fudge: number
  readonly error: number
  readonly other: Buffer
}

/** Returns the "TSIG Variables" (section 4.3.3). */
const variablesOf = ({ algorithm, error, fudge, name, other, time }: Variables): Buffer =>
  Buffer.concat([
    name,
    uint16(rr.classAny),
    uint32(0),
    algorithm,
    uint48(time),
    uint16(fudge),
    uint16(error),
    uint16(other.length),
    other
  ])

const macOf = ({ algorithm, secret }: TsigKey, parts: ReadonlyArray<Buffer>): Buffer =>
  hmac(digests[algorithm], secret, parts)

const names = (key: TsigKey) => Result.all({ name: encodeName(key.name), algorithm: encodeName(key.algorithm) })

/**
 * Adds a signature to a message. Also returns the MAC, because the signature of the answer must cover it. `now` is in
 * epoch seconds.
 */
export const sign = (
  message: Buffer,
  key: TsigKey,
  now: number
): Result.Result<{ readonly signed: Buffer; readonly mac: Buffer }, DnsFault> =>
  Result.map(names(key), ({ algorithm, name }) => {
    const none = Buffer.alloc(0)
    const variables = variablesOf({ name, algorithm, time: now, fudge, error: 0, other: none })
    const mac = macOf(key, [message, variables])
    const rdata = Buffer.concat([
      algorithm,
      uint48(now),
      uint16(fudge),
      uint16(mac.length),
      mac,
      message.subarray(0, 2),
      uint16(0),
      uint16(0)
    ])
    const record = Buffer.concat([name, uint16(rr.tsig), uint16(rr.classAny), uint32(0), uint16(rdata.length), rdata])
    const signed = Buffer.concat([message, record])
    signed.writeUInt16BE(message.readUInt16BE(10) + 1, 10)
    return { signed, mac }
  })

interface Signature extends Omit<Variables, "name" | "algorithm"> {
  readonly keyName: string
  readonly algorithmName: string
  readonly mac: Buffer
  readonly originalId: number
  readonly start: number
}

const signatureOf = (octets: Buffer, { additional }: DnsMessage): Result.Result<Signature | undefined, DnsFault> =>
  reading(() => {
    const last = additional.at(-1)
    if (additional.slice(0, -1).some(({ type }) => type === rr.tsig)) {
      throw new DnsFault({ detail: "a signature that is not the last record" })
    }
    if (last?.type !== rr.tsig) return undefined
    const { end, name } = readName(octets, last.rdataAt)
    const rest = octets.subarray(end, last.rdataAt + last.rdata.length)
    const macLength = rest.readUInt16BE(8)
    const after = rest.subarray(10 + macLength)
    const otherLength = after.readUInt16BE(4)
    if (after.length !== 6 + otherLength) throw new DnsFault({ detail: "a signature of the wrong length" })
    return {
      keyName: last.name,
      algorithmName: name,
      time: rest.readUIntBE(0, 6),
      fudge: rest.readUInt16BE(6),
      mac: rest.subarray(10, 10 + macLength),
      originalId: after.readUInt16BE(0),
      error: after.readUInt16BE(2),
      other: after.subarray(6),
      start: last.start
    }
  })

/** The reasons why an answer is not accepted, in words for an operator. */
const disbelief = {
  unsigned: "the answer is not signed",
  /** Anyone may have sent this answer. But most likely the server has sent it, so it is shown. */
  refused: (rcode: number) => `the server refused the update: ${rcodeName(rcode)}; its answer is not signed`,
  badKey: ({ algorithm, name }: TsigKey) => `BADKEY: the server does not know the key ${name} with ${algorithm}`,
  badSignature: ({ name }: TsigKey) => `BADSIG: the server has another secret for the key ${name}`,
  otherKey: "the answer is signed with another key or algorithm",
  mac: "the signature of the answer does not verify",
  window: "the answer was signed at another time: it is a copy, or the clocks differ",
  badTime: (seconds: number) => `BADTIME: the server's clock differs by ${seconds} seconds`,
  error: (code: number) => `the server refused the signature with TSIG error ${code}`
}

/**
 * Verifies and parses the answer to a signed message. An answer is accepted only if a holder of the key has signed it
 * recently, and for this message.
 */
export const verify = (
  octets: Buffer,
  key: TsigKey,
  requestMac: Buffer,
  now: number
): Result.Result<DnsMessage, DnsFault> =>
  Result.gen(function*() {
    const message = yield* readMessage(octets)
    const signature = yield* signatureOf(octets, message)
    const refuse = (detail: string) => Result.fail(new DnsFault({ detail }))
    if (signature === undefined) {
      return yield* refuse(message.rcode === 0 ? disbelief.unsigned : disbelief.refused(message.rcode))
    }
    // These two errors come without a MAC, because the server has no key to make one.
    if (signature.mac.length === 0 && signature.error === 17) return yield* refuse(disbelief.badKey(key))
    if (signature.mac.length === 0 && signature.error === 16) return yield* refuse(disbelief.badSignature(key))
    const { algorithm, name } = yield* names(key)
    const isOurs = signature.keyName === `${key.name.replace(/\.$/, "").toLowerCase()}.` &&
      signature.algorithmName === `${key.algorithm}.`
    if (!isOurs) return yield* refuse(disbelief.otherKey)
    const plain = Buffer.from(octets.subarray(0, signature.start))
    plain.writeUInt16BE(signature.originalId, 0)
    plain.writeUInt16BE(octets.readUInt16BE(10) - 1, 10)
    const expected = macOf(key, [
      uint16(requestMac.length),
      requestMac,
      plain,
      variablesOf({ ...signature, name, algorithm })
    ])
    // A truncated MAC is not accepted: none of these algorithms needs one (section 5.2.2.1).
    if (!isSame(signature.mac, expected)) return yield* refuse(disbelief.mac)
    if (signature.error === 18 && signature.other.length === 6) {
      return yield* refuse(disbelief.badTime(Math.abs(signature.other.readUIntBE(0, 6) - now)))
    }
    if (signature.error !== 0) return yield* refuse(disbelief.error(signature.error))
    if (Math.abs(now - signature.time) > Math.min(signature.fudge, fudge)) return yield* refuse(disbelief.window)
    return message
  })
