import { shownCharacter } from "./Character.ts"

/**
 * Decodes base64url (RFC 4648 section 5). Returns `undefined` if the text contains padding, white space, characters
 * outside the alphabet or stray trailing bits. The decoder of the runtime accepts all of these, so the result is
 * encoded again and compared with the text.
 */
export const decodeBase64url = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "base64url")
  return bytes.toString("base64url") === text ? bytes : undefined
}

const PEM = "-----BEGIN "

/**
 * Returns why {@link decodeBase64url} refused a text, as the end of a sentence. The reason shows at most one character
 * of the text.
 */
export const base64urlFault = (text: string): string => {
  if (text.includes(PEM)) return "it is PEM; send the DER inside it, as base64url"
  if (/^[A-Za-z0-9_-]*=+$/.test(text)) return "it has padding"
  const foreign = /[^A-Za-z0-9_-]/u.exec(text)?.[0]
  if (foreign === "+" || foreign === "/") {
    return `it holds ${shownCharacter(foreign)} of base64, where base64url has - and _`
  }
  return foreign === undefined
    ? "it is cut short, or stray bits are set at its end"
    : `it holds ${shownCharacter(foreign)}`
}

/** Returns whether the octets are PEM text instead of DER. */
export const isPem = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.subarray(0, 100)).toString("latin1").trimStart().startsWith(PEM)
