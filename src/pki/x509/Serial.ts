/** Serial numbers as they are stored, listed and searched for: lower-case hexadecimal without leading zero octets. */

/** The stored form of whole octets in hexadecimal. */
export const foldSerial = (hex: string): string => hex.toLowerCase().replace(/^(?:00)+(?=..)/, "")

/** The stored form of the content octets of a serial number. */
export const serialText = (octets: Uint8Array): string => foldSerial(Buffer.from(octets).toString("hex"))
