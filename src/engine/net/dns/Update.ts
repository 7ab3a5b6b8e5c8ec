import * as Result from "effect/Result"
import type { DnsFault } from "./DnsMessage.ts"
import { encodeName, rr, uint16, uint32 } from "./DnsMessage.ts"

/* Updates of a zone (RFC 2136) that add or delete one TXT value. All other records with the same name stay. */

/** The change of one TXT value. */
export interface TxtChange {
  readonly action: "add" | "delete"
  /** The zone to be changed. */
  readonly zone: string
  readonly name: string
  readonly value: string
}

const opcodeUpdate = 5
/** The TTL of the value, in seconds. */
const ttl = 60
const longestString = 255

const strings = (value: string): Buffer => {
  const octets = Buffer.from(value, "latin1")
  const parts: Array<Buffer> = []
  for (let at = 0; at === 0 || at < octets.length; at += longestString) {
    const part = octets.subarray(at, at + longestString)
    parts.push(Buffer.of(part.length), part)
  }
  return Buffer.concat(parts)
}

/** Returns the unsigned message: header, zone section, and one update (sections 2.5.1 and 2.5.4). */
export const encodeUpdate = (id: number, change: TxtChange): Result.Result<Buffer, DnsFault> =>
  Result.map(
    Result.all({ zone: encodeName(change.zone), name: encodeName(change.name) }),
    ({ name, zone }) => {
      const rdata = strings(change.value)
      const [recordClass, life] = change.action === "add" ? [rr.classIn, ttl] as const : [rr.classNone, 0] as const
      return Buffer.concat([
        uint16(id),
        uint16(opcodeUpdate << 11),
        uint16(1),
        uint16(0),
        uint16(1),
        uint16(0),
        zone,
        uint16(rr.soa),
        uint16(rr.classIn),
        name,
        uint16(rr.txt),
        uint16(recordClass),
        uint32(life),
        uint16(rdata.length),
        rdata
      ])
    }
  )
