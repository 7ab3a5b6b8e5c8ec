import * as Effect from "effect/Effect"
import { pbkdf2 } from "node:crypto"
import { isSame } from "./Digest.ts"

/** The parts of a stored password hash (docs/decisions/admin.md, "Passwords"). */
export interface PasswordHash {
  readonly iterations: number
  readonly salt: Uint8Array
  readonly hash: Uint8Array
}

/** The octets of a salt. */
export const saltSize = 16

const hashSize = 32
// The stored number decides how much work is done, so it is bounded here.
const mostIterations = 10_000_000
const base64 = "[A-Za-z0-9+/]"
const form = new RegExp(`^\\$pbkdf2-sha256\\$i=([1-9][0-9]{0,7})\\$(${base64}{22})\\$(${base64}{43})$`)

const unpadded = (octets: Uint8Array): string => Buffer.from(octets).toString("base64").replace(/=+$/, "")

/** `$pbkdf2-sha256$i=<iterations>$<salt>$<hash>`, both in base64 without padding. */
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

/** PBKDF2-HMAC-SHA256 (RFC 8018) of the password's NFC, on the thread pool. It cannot be interrupted. */
export const derive: Derive = (password, salt, iterations) =>
  Effect.uninterruptible(Effect.callback<Uint8Array>((resume) => {
    pbkdf2(password.normalize("NFC"), salt, iterations, hashSize, "sha256", (error, hash) => {
      resume(error === null ? Effect.succeed(hash) : Effect.die(error))
    })
  }))

/** Returns a hash that matches no password. It consists of random octets, so nobody knows a password with this hash. */
export const unmatchable = (drawn: Uint8Array, iterations: number): PasswordHash => ({
  iterations,
  salt: drawn.subarray(0, saltSize),
  hash: drawn.subarray(saltSize, saltSize + hashSize)
})

/** The octets that {@link unmatchable} needs. */
export const unmatchableSize = saltSize + hashSize

/** Returns whether a derived hash is the stored one. The time of the comparison does not show where they differ. */
export const isHashOf = (derived: Uint8Array, { hash }: PasswordHash): boolean => isSame(derived, hash)
