/**
 * The form in which serial numbers are stored, listed and searched for: lower-case hexadecimal without leading zero
 * octets.
 */

/** The stored form of a serial number in hexadecimal with whole octets. */
export const foldSerial = (hex: string): string => hex.toLowerCase().replace(/^(?:00)+(?=..)/, "")

/** The stored form of the content octets of a serial number. */
export const serialText = (octets: Uint8Array): string => foldSerial(Buffer.from(octets).toString("hex"))

/** A serial number as people write it, with colons or blanks between its digits, in its stored form; `undefined` for other text. */
export const parseSerial = (text: string): string | undefined => {
  const digits = text.replaceAll(/[:\s]/g, "")
  return /^[0-9a-f]{1,100}$/i.test(digits) ? foldSerial(digits.length % 2 === 0 ? digits : `0${digits}`) : undefined
}
