import { createHash, createHmac, hash, timingSafeEqual } from "node:crypto"

/** Returns the SHA-256 in lower-case hexadecimal. Such digests name keys, certificates and files. */
export const sha256 = (content: string | Uint8Array): string => hash("sha256", content)

/** Returns the octets of the SHA-256. */
export const sha256Octets = (content: string | Uint8Array): Buffer => hash("sha256", content, "buffer")

/**
 * Returns the SHA-1 in lower-case hexadecimal. SHA-1 is no longer secure. Use this only to look up entries in lists
 * that others made with SHA-1.
 */
export const sha1 = (content: string | Uint8Array): string => hash("sha1", content)

/** A SHA-256 of content that is added piece by piece. */
export interface RunningDigest {
  readonly add: (content: string | Uint8Array) => void
  /** Returns the digest of all content that was added, in lower-case hexadecimal. After that, nothing can be added. */
  readonly end: () => string
}

/** Begins a {@link RunningDigest}. */
export const runningSha256 = (): RunningDigest => {
  const digest = createHash("sha256")
  return {
    add: (content) => {
      digest.update(content)
    },
    end: () => digest.digest("hex")
  }
}

/** The digests on which message authentication codes can be based. */
export type MacDigest = "sha256" | "sha384" | "sha512"

/** Returns the HMAC (RFC 2104) of the concatenated parts. */
export const hmac = (
  digest: MacDigest,
  secret: Uint8Array,
  parts: ReadonlyArray<string | Uint8Array>
): Buffer => {
  const mac = createHmac(digest, secret)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** Compares in constant time, so that the duration does not depend on where two texts of equal length differ. */
export const isSame = (given: Uint8Array, wanted: Uint8Array): boolean =>
  given.length === wanted.length && timingSafeEqual(given, wanted)
