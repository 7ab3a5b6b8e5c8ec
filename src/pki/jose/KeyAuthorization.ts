import { hash, timingSafeEqual } from "node:crypto"

/** SHA-256 of a key authorization: what a client shows in dns-01 (RFC 8555 section 8.4) and tls-alpn-01 (RFC 8737). */
export const keyAuthorizationDigest = (keyAuthorization: string): Buffer => hash("sha256", keyAuthorization, "buffer")

/** Equality in a time that says nothing of where two texts of one length differ. */
export const isSame = (given: Uint8Array, wanted: Uint8Array): boolean =>
  given.length === wanted.length && timingSafeEqual(given, wanted)
