import * as Effect from "effect/Effect"
import { pbkdf2 } from "node:crypto"
import { isSame } from "./Digest.ts"

/** The parts of a stored password hash (docs/contribute/decisions/admin.md, "Passwords"). */
export interface PasswordHash {
  readonly iterations: number
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

/** The number of octets in a salt. */
export const saltSize = 16

const hashSize = 32
// The stored number of iterations determines how long a comparison takes, so the number is limited here.
const mostIterations = 10_000_000
const base64 = "[A-Za-z0-9+/]"
const form = new RegExp(`^\\$pbkdf2-sha256\\$i=([1-9][0-9]{0,7})\\$(${base64}{22})\\$(${base64}{43})$`)

const unpadded = (octets: Uint8Array): string => Buffer.from(octets).toString("base64").replace(/=+$/, "")

/** Returns `$pbkdf2-sha256$i=<iterations>$<salt>$<hash>`. Salt and hash are in base64 without padding. */
export const printPasswordHash = ({ hash, iterations, salt }: PasswordHash): string =>
  `$pbkdf2-sha256$i=${iterations}$${unpadded(salt)}$${unpadded(hash)}`

/** Reads the text that {@link printPasswordHash} writes. Returns `undefined` for any other text. */
export const parsePasswordHash = (text: string): PasswordHash | undefined => {
  const [, digits, salt, hash] = form.exec(text) ?? []
  if (digits === undefined || salt === undefined || hash === undefined) return undefined
  const iterations = Number(digits)
  return iterations > mostIterations
    ? undefined
    : { iterations, salt: Buffer.from(salt, "base64"), hash: Buffer.from(hash, "base64") }
}

/** Derives the hash of a password. */
export type Derive = (password: string, salt: Uint8Array, iterations: number) => Effect.Effect<Uint8Array>

/**
 * Derives the hash with PBKDF2-HMAC-SHA256 (RFC 8018), on the thread pool. The password is first normalized to NFC. The
 * derivation cannot be interrupted.
 */
export const derive: Derive = (password, salt, iterations) =>
  Effect.uninterruptible(Effect.callback<Uint8Array>((resume) => {
    pbkdf2(password.normalize("NFC"), salt, iterations, hashSize, "sha256", (error, hash) => {
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    })
  }))

/** Returns a hash of random octets, for which no password is known. */
export const unmatchable = (drawn: Uint8Array, iterations: number): PasswordHash => ({
  iterations,
  salt: drawn.subarray(0, saltSize),
  hash: drawn.subarray(saltSize, saltSize + hashSize)
})

/** The number of octets that {@link unmatchable} needs. */
export const unmatchableSize = saltSize + hashSize

/**
 * Returns whether a derived hash is the stored hash. The duration of the comparison does not depend on where the two
 * hashes differ.
 */
export const isHashOf = (derived: Uint8Array, { hash }: PasswordHash): boolean => isSame(derived, hash)
