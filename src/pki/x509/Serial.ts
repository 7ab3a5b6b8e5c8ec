/**
 * The form in which serial numbers are stored, listed and searched for: lower-case hexadecimal without leading zero
 * octets.
 */

/** The stored form of a serial number in hexadecimal with whole octets. */
export const foldSerial = (hex: string): string => hex.toLowerCase().replace(/^(?:00)+(?=..)/, "")

/** The stored form of the content octets of a serial number. */
export const serialText = (octets: Uint8Array): string => foldSerial(Buffer.from(octets).toString("hex"))
