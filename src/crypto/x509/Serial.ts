/**
 * The form in which serial numbers are stored, listed and searched for: lower-case hexadecimal without leading zero
 * octets.
 */

/** Returns the stored form of a serial number that is given in hexadecimal with whole octets. */
export const foldSerial = (hex: string): string => hex.toLowerCase().replace(/^(?:00)+(?=..)/, "")

/** Returns the stored form of a serial number that is given as its content octets. */
export const serialText = (octets: Uint8Array): string => foldSerial(Buffer.from(octets).toString("hex"))

const octetsWithHyphens = /^\s*[0-9a-f]{2}(?:-[0-9a-f]{2})+\s*$/i

/**
 * Reads a serial number as people and programs write it, perhaps with colons, blanks or hyphens between its octets.
 * Returns its stored form, or `undefined` for any other text. A UUID also has hyphens, but in other places.
 */
export const parseSerial = (text: string): string | undefined => {
  const digits = text.replaceAll(octetsWithHyphens.test(text) ? /[-\s]/g : /[:\s]/g, "")
  return /^[0-9a-f]{1,100}$/i.test(digits) ? foldSerial(digits.length % 2 === 0 ? digits : `0${digits}`) : undefined
}
