import * as Effect from "effect/Effect"
import type { KeyObject } from "node:crypto"
import { generateKeyPair } from "node:crypto"
import { encodePem } from "../asn1/Pem.ts"
import { lackedMlDsa } from "../keys/MlDsa.ts"
import type { NotSigned } from "./CaKey.ts"
import { makeCaKey, UnsupportedIssuer } from "./CaKey.ts"
import { encryptKey, fewRounds } from "./EncryptedKey.ts"
import { signCertificate } from "./Leaf.ts"
import { pkcs8Of } from "./Pkcs8.ts"

/* Makes keys and their self-signed certificates. This is done rarely, so its speed does not matter. */

/** `signer.local_ca.key_type`: the types of a generated key. The runtime may lack those of ML-DSA. */
export const caKeyTypes = [
  "ecdsa-p256",
  "ecdsa-p384",
  "rsa-2048",
  "rsa-3072",
  "rsa-4096",
  "ml-dsa-65",
  "ml-dsa-87"
] as const
export type CaKeyType = (typeof caKeyTypes)[number]

/** A certificate and its key in the form of their files: one CERTIFICATE block, and one PKCS#8 block. */
export interface CertificatePair {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/**
 * Generates a key pair of this type. The exponent of an RSA key is 65537. The work is done on the thread pool, because
 * RSA 4096 may take seconds. Fails if the runtime has no such keys.
 */
export const generateKey = (
  type: CaKeyType
): Effect.Effect<{ readonly privateKey: KeyObject; readonly spki: Uint8Array }, UnsupportedIssuer> =>
  Effect.callback((resume) => {
    const lacked = lackedMlDsa(type)
    if (lacked !== undefined) {
      return resume(new UnsupportedIssuer({ detail: `an ${lacked} key, which this Node.js does not have` }))
    }
    // If the generator fails, the runtime is broken, and no caller can handle that.
    const done = (cause: Error | null, publicKey: KeyObject, privateKey: KeyObject) =>
      resume(
        cause === null
          ? Effect.succeed({ privateKey, spki: publicKey.export({ type: "spki", format: "der" }) })
          : Effect.die(cause)
      )
    if (type === "ecdsa-p256") generateKeyPair("ec", { namedCurve: "P-256" }, done)
    else if (type === "ecdsa-p384") generateKeyPair("ec", { namedCurve: "P-384" }, done)
    else if (type === "ml-dsa-65" || type === "ml-dsa-87") generateKeyPair(type, undefined, done)
    else generateKeyPair("rsa", { modulusLength: Number(type.slice(4)), publicExponent: 65537 }, done)
  })

/** A passphrase that is in a file of its own, and {@link encryptionOctets} random octets. */
export interface KeyEncryption {
  readonly passphrase: string
  readonly random: Uint8Array
}

/** Returns a private key as PKCS#8 PEM, encrypted if there is a passphrase. */
export const privateKeyPem = (key: KeyObject, encryption?: KeyEncryption): Effect.Effect<string> =>
  encryption === undefined
    ? Effect.sync(() => encodePem("PRIVATE KEY", pkcs8Of(key)))
    : encryptKey(key, encryption.passphrase, encryption.random, fewRounds)

const BACKDATE_SECONDS = 3600

/**
 * The contents of a self-signed certificate. `name` is the DER Name of both subject and issuer. `extensions` makes the
 * DER extensions for the key. `serial` comes from `serialFrom`. The validity begins one hour before `now` (epoch
 * seconds) and lasts for the given number of days.
 */
export interface SelfSignedFields {
  readonly name: Uint8Array
  readonly now: number
  readonly serial: Uint8Array
  readonly validityDays: number
  readonly extensions: (spki: Uint8Array) => ReadonlyArray<Uint8Array>
}

/** Returns a certificate for a key, signed with the same key, as PEM. */
export const signSelf = Effect.fnUntraced(function*(
  { privateKey, spki }: { readonly privateKey: KeyObject; readonly spki: Uint8Array },
  { extensions, name, now, serial, validityDays }: SelfSignedFields
): Effect.fn.Return<string, NotSigned | UnsupportedIssuer> {
  const signer = yield* Effect.fromResult(makeCaKey(privateKey))
  const notBefore = Math.floor(now) - BACKDATE_SECONDS
  const der = yield* signCertificate(signer, {
    serial,
    issuer: name,
    notBefore,
    notAfter: notBefore + validityDays * 86400,
    subject: name,
    spki,
    extensions: extensions(spki)
  })
  return encodePem("CERTIFICATE", der)
})

/** Generates a key and its self-signed certificate. If there is a passphrase, the key is encrypted with it. */
export const generateSelfSigned = Effect.fnUntraced(function*(
  { encryption, keyType, ...fields }: SelfSignedFields & {
    readonly keyType: CaKeyType
    readonly encryption?: KeyEncryption | undefined
  }
): Effect.fn.Return<CertificatePair, NotSigned | UnsupportedIssuer> {
  const made = yield* generateKey(keyType)
  return {
    certificatePem: yield* signSelf(made, fields),
    privateKeyPem: yield* privateKeyPem(made.privateKey, encryption)
  }
})
