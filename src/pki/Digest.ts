import { createHash, createHmac, hash, timingSafeEqual } from "node:crypto"

/** Lower-case hexadecimal SHA-256: how keys, certificates and files are named. */
export const sha256 = (content: string | Uint8Array): string => hash("sha256", content)

/** The octets of a SHA-256. */
export const sha256Octets = (content: string | Uint8Array): Buffer => hash("sha256", content, "buffer")

/** Lower-case hexadecimal SHA-1, for names that others have given by it; it proves nothing any more. */
export const sha1 = (content: string | Uint8Array): string => hash("sha1", content)

/** A SHA-256 of more than is held in memory at once. */
export interface RunningDigest {
  readonly add: (content: string | Uint8Array) => void
  /** Lower-case hexadecimal of everything added; nothing can be added after it. */
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

/** The HMAC (RFC 2104) of parts that follow one another. */
export const hmac = (
  digest: "sha256" | "sha384" | "sha512",
  secret: Uint8Array,
  parts: ReadonlyArray<string | Uint8Array>
): Buffer => {
  const mac = createHmac(digest, secret)
  for (const part of parts) mac.update(part)
  return mac.digest()
}

/** Equality in a time that says nothing of where two texts of one length differ. */
export const isSame = (given: Uint8Array, wanted: Uint8Array): boolean =>
  given.length === wanted.length && timingSafeEqual(given, wanted)
