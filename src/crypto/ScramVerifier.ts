import { createHmac, pbkdf2Sync } from "node:crypto"
import { sha256Octets } from "./Digest.ts"

/** PostgreSQL's own number of rounds. */
const usualIterations = 4096

const hmac = (key: Uint8Array, text: string): Buffer => createHmac("sha256", key).update(text).digest()

/**
 * Returns what a server of PostgreSQL stores instead of a password: `SCRAM-SHA-256$<rounds>:<salt>$<keys>` (RFC 5803,
 * with the names of RFC 5802). A statement that sets this text as the password shows the password to nobody who reads
 * the log of the server.
 */
export const scramVerifier = (password: string, salt: Uint8Array, iterations = usualIterations): string => {
  const salted = pbkdf2Sync(password, salt, iterations, 32, "sha256")
  const storedKey = sha256Octets(hmac(salted, "Client Key"))
  const serverKey = hmac(salted, "Server Key")
  const base64 = (octets: Uint8Array) => Buffer.from(octets).toString("base64")
  return `SCRAM-SHA-256$${iterations}:${base64(salt)}$${base64(storedKey)}:${base64(serverKey)}`
}
