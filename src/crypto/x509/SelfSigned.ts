import * as Effect from "effect/Effect"
import type { KeyObject } from "node:crypto"
import { generateKeyPair } from "node:crypto"
import { encodePem } from "../asn1/Pem.ts"
import { makeCaKey, type NotSigned, type UnsupportedIssuer } from "./CaKey.ts"
import { signCertificate } from "./Leaf.ts"

/* Makes keys and their self-signed certificates. This is done rarely, so its speed does not matter. */

/** `signer.local_ca.key_type`: the type of a generated key. */
export type CaKeyType = "ecdsa-p256" | "ecdsa-p384" | "rsa-2048" | "rsa-3072" | "rsa-4096"

/** A certificate and its key in the form of their files: one CERTIFICATE block, and one PKCS#8 block. */
export interface CertificatePair {
  readonly certificatePem: string
  readonly privateKeyPem: string
}

/**
 * Generates a key pair of this type. The exponent of an RSA key is 65537. The work is done on the thread pool, because
 * RSA 4096 may take seconds.
 */
export const generateKey = (
  type: CaKeyType
): Effect.Effect<{ readonly privateKey: KeyObject; readonly spki: Uint8Array }> =>
  Effect.callback((resume) => {
    // If the generator fails, the runtime is broken, and no caller can handle that.
    const done = (cause: Error | null, publicKey: KeyObject, privateKey: KeyObject) =>
      resume(
        cause === null
          ? Effect.succeed({ privateKey, spki: publicKey.export({ type: "spki", format: "der" }) })
          : Effect.die(cause)
      )
    if (type === "ecdsa-p256") generateKeyPair("ec", { namedCurve: "P-256" }, done)
    else if (type === "ecdsa-p384") generateKeyPair("ec", { namedCurve: "P-384" }, done)
    else generateKeyPair("rsa", { modulusLength: Number(type.slice(4)), publicExponent: 65537 }, done)
  })

/** Returns a private key as PKCS#8 PEM. With a passphrase it is encrypted by PBES2 with AES-256-CBC (RFC 8018). */
export const privateKeyPem = (key: KeyObject, passphrase?: string): string =>
  key.export({
    type: "pkcs8",
    format: "pem",
    ...passphrase === undefined ? {} : { cipher: "aes-256-cbc", passphrase }
  }).toString()

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
  { keyType, passphrase, ...fields }: SelfSignedFields & {
    readonly keyType: CaKeyType
    readonly passphrase?: string | undefined
  }
): Effect.fn.Return<CertificatePair, NotSigned | UnsupportedIssuer> {
  const made = yield* generateKey(keyType)
  return { certificatePem: yield* signSelf(made, fields), privateKeyPem: privateKeyPem(made.privateKey, passphrase) }
})
