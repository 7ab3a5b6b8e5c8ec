import { Tag } from "./DerReader.ts"

/** Writes DER, one element at a time, from parts that are already DER. */

/** Returns one element: the header, then the concatenated parts. */
export const element = (tag: number, ...parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  let length = 0
  for (const part of parts) length += part.length
  const octets = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x10000 ? 2 : length < 0x1000000 ? 3 : 4
  const out = Buffer.allocUnsafe(2 + octets + length)
  out[0] = tag
  out[1] = octets === 0 ? length : 0x80 + octets
  let at = 2
  for (let i = octets - 1; i >= 0; i--) out[at++] = Math.floor(length / 2 ** (8 * i)) & 0xff
  for (const part of parts) {
    // For shorter parts, a loop is cheaper than the native call.
    if (part.length > 48) out.set(part, at)
    else for (let i = 0; i < part.length; i++) out[at + i] = part[i] ?? 0
    at += part.length
  }
  return out
}

/** Returns a SEQUENCE of the parts. */
export const sequence = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => element(Tag.sequence, ...parts)

/** Returns an INTEGER, made from a big-endian magnitude. Leading zeros are dropped or added as DER requires. */
export const unsigned = (magnitude: Uint8Array): Uint8Array => {
  let start = 0
  while (start < magnitude.length - 1 && magnitude[start] === 0) start++
  const octets = magnitude.subarray(start)
  const first = octets[0] ?? 0
  return octets.length === 0 || first >= 0x80
    ? element(Tag.integer, Uint8Array.of(0), octets)
    : element(Tag.integer, octets)
}

/** Returns an OBJECT IDENTIFIER, made from its dotted form. */
export const oid = (dotted: string): Uint8Array => {
  const [root = 0, second = 0, ...rest] = dotted.split(".").map(Number)
  const octets: Array<number> = []
  for (const arc of [root * 40 + second, ...rest]) {
    const septets = [arc % 128]
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) septets.unshift(left % 128 + 128)
    octets.push(...septets)
  }
  return element(Tag.oid, Uint8Array.from(octets))
}

/** Returns a BIT STRING of whole octets. */
export const bits = (octets: Uint8Array): Uint8Array => element(Tag.bitString, Uint8Array.of(0), octets)

/** Returns a character string of a type that contains UTF-8. If the type requires ASCII, the value must be ASCII. */
export const text = (tag: number, value: string): Uint8Array => element(tag, Buffer.from(value, "utf8"))

/**
 * Returns a Time, made from epoch seconds: UTCTime up to 2049, GeneralizedTime from 2050 (RFC 5280 section 4.1.2.5).
 */
export const time = (epochSeconds: number): Uint8Array => {
  const at = new Date(epochSeconds * 1000)
  const year = at.getUTCFullYear()
  const isShort = year >= 1950 && year < 2050
  const rest = `${two(at.getUTCMonth() + 1)}${two(at.getUTCDate())}${two(at.getUTCHours())}${two(at.getUTCMinutes())}${
    two(at.getUTCSeconds())
  }Z`
  return isShort
    ? text(Tag.utcTime, two(year % 100) + rest)
    : text(Tag.generalizedTime, String(year).padStart(4, "0") + rest)
}

const two = (value: number): string => value < 10 ? `0${value}` : String(value)
