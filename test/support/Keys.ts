import type { KeyObject } from "node:crypto"
import { createPrivateKey, generateKeyPairSync } from "node:crypto"

/* Keys of the tests. The export of a new key as JWK can hang forever, so each key is encoded and read back first. */

/** Returns a P-256 key. */
export const newEcKey = (): KeyObject =>
  createPrivateKey(
    generateKeyPairSync("ec", {
      namedCurve: "P-256",
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" }
    }).privateKey
  )

/** Returns an RSA key of 2048 bits. */
export const newRsaKey = (): KeyObject =>
  createPrivateKey(
    generateKeyPairSync("rsa", {
      modulusLength: 2048,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" }
    }).privateKey
  )
