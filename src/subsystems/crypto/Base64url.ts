/**
 * Strict base64url (RFC 4648 section 5): no padding, white space, foreign characters or stray trailing bits. Checked by
 * encoding again, because the runtime's decoder accepts all of those. `undefined` when it is anything else.
 */
export const decodeBase64url = (text: string): Buffer | undefined => {
  const bytes = Buffer.from(text, "base64url")
  return bytes.toString("base64url") === text ? bytes : undefined
}
