import { sha256Octets } from "../Digest.ts"

/**
 * Returns the SHA-256 of a key authorization. A client presents this digest in dns-01 (RFC 8555 section 8.4) and in
 * tls-alpn-01 (RFC 8737).
 */
export const keyAuthorizationDigest = (keyAuthorization: string): Buffer => sha256Octets(keyAuthorization)
