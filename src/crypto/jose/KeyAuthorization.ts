import { sha256Octets } from "../Digest.ts"

/** SHA-256 of a key authorization, which a client shows in dns-01 (RFC 8555 section 8.4) and tls-alpn-01 (RFC 8737). */
export const keyAuthorizationDigest = (keyAuthorization: string): Buffer => sha256Octets(keyAuthorization)
