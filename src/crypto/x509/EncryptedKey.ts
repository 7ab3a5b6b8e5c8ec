import * as Effect from "effect/Effect"
import type { KeyObject } from "node:crypto"
import { createCipheriv, pbkdf2 } from "node:crypto"
import { Tag } from "../asn1/DerReader.ts"
import { element, oid, sequence, unsigned } from "../asn1/DerWriter.ts"
import { encodePem } from "../asn1/Pem.ts"
import { pkcs8Of } from "./Pkcs8.ts"

/* Encrypts a private key by PBES2 (RFC 8018). */

/**
 * How often PBKDF2 with HMAC-SHA-256 is done. `manyRounds` take about a fifth of a second: for a passphrase that a
 * person remembers, and a file that lies in a drawer for twenty years. `fewRounds`, the usual number of OpenSSL, are for
 * a passphrase in a file, because each start and each reload does them on the event loop.
 */
export const [manyRounds, fewRounds] = [600_000, 2048]
const keyOctets = 32
/** How many random octets {@link encryptKey} needs: the salt and the initialization vector. */
export const encryptionOctets = 32

const derive = (passphrase: string, salt: Uint8Array, rounds: number): Effect.Effect<Buffer> =>
  Effect.callback((resume) =>
    pbkdf2(
      passphrase,
      salt,
      rounds,
      keyOctets,
      "sha256",
      (cause, key) => resume(cause === null ? Effect.succeed(key) : Effect.die(cause))
    )
  )

/**
 * Returns a private key as an encrypted PKCS#8 block: PBES2 with PBKDF2, HMAC-SHA-256 and AES-256-CBC. `random` has
 * {@link encryptionOctets} octets.
 */
export const encryptKey = Effect.fnUntraced(function*(
  key: KeyObject,
  passphrase: string,
  random: Uint8Array,
  rounds: number
) {
  const [salt, vector] = [random.subarray(0, 16), random.subarray(16, encryptionOctets)]
  const cipher = createCipheriv("aes-256-cbc", yield* derive(passphrase, salt, rounds), vector)
  const encrypted = Buffer.concat([cipher.update(pkcs8Of(key)), cipher.final()])
  const count = Buffer.alloc(4)
  count.writeUInt32BE(rounds)
  const derivation = sequence(
    oid("1.2.840.113549.1.5.12"),
    sequence(
      element(Tag.octetString, salt),
      unsigned(count),
      sequence(oid("1.2.840.113549.2.9"), element(Tag.null))
    )
  )
  const encryption = sequence(oid("2.16.840.1.101.3.4.1.42"), element(Tag.octetString, vector))
  return encodePem(
    "ENCRYPTED PRIVATE KEY",
    sequence(
      sequence(oid("1.2.840.113549.1.5.13"), sequence(derivation, encryption)),
      element(Tag.octetString, encrypted)
    )
  )
})
