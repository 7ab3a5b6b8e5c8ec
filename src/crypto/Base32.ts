const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"

/** Returns the Base32 (RFC 4648 section 6) of the octets, in upper case and without padding. */
export const encodeBase32 = (octets: Uint8Array): string => {
  let [text, bits, held] = ["", 0, 0]
  for (const octet of octets) {
    held = (held << 8) | octet
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet[(held >> (bits - 5)) & 31] ?? ""
    held &= (1 << bits) - 1
  }
  return bits === 0 ? text : text + (alphabet[(held << (5 - bits)) & 31] ?? "")
}
