import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Entropy } from "../../crypto/Entropy.ts"
import type { CaKey } from "../../crypto/x509/CaKey.ts"
import { makeCaKey } from "../../crypto/x509/CaKey.ts"
import { loadCa, readCaKey } from "../../crypto/x509/CaMaterial.ts"
import { encryptionOctets } from "../../crypto/x509/EncryptedKey.ts"
import type { CaKeyType } from "../../crypto/x509/SelfSigned.ts"
import { generateKey, privateKeyPem } from "../../crypto/x509/SelfSigned.ts"
import type { NewFile } from "../../engine/host/KeyFile.ts"
import { isTaken } from "../../engine/host/KeyFile.ts"
import { Web } from "../../engine/net/Web.ts"
import type { CaFileSettings } from "./CaFiles.ts"
import { CaFilesUnusable, passphraseOf, readIfPresent } from "./CaFiles.ts"
import { findTokenKey } from "./TokenKey.ts"
import { findTransitKey } from "./TransitKey.ts"

/* The place that the configuration gives to the key of a CA, before the CA has a certificate. */

const inFile = (settings: CaFileSettings): Effect.Effect<CaKey | undefined, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { key_path } = settings
    const file = yield* readIfPresent("signer.local_ca.key_path", key_path)
    if (file === undefined) return undefined
    const passphrase = yield* passphraseOf(settings)
    return yield* Effect.mapError(
      Effect.fromResult(readCaKey(file.text, passphrase?.text)),
      ({ detail }) =>
        new CaFilesUnusable({ detail: `signer.local_ca.key_path: ${key_path} cannot be used: ${detail}.` })
    )
  })

const inToken = ({ pkcs11 }: CaFileSettings): Effect.Effect<CaKey, CaFilesUnusable> =>
  Effect.mapError(findTokenKey(pkcs11), (error) =>
    new CaFilesUnusable(
      error._tag === "TokenFailed"
        ? { detail: `signer.local_ca.pkcs11: ${error.detail}.`, mayPass: !error.isFault }
        : { detail: `signer.local_ca.pkcs11: the token has ${error.detail}.` }
    ))

/** Of several versions, the one that the certificate belongs to is meant, if there is a certificate. */
const inTransit = ({ cert_path, transit }: CaFileSettings): Effect.Effect<CaKey, CaFilesUnusable, Web> =>
  Effect.gen(function*() {
    const certificate = yield* readIfPresent("signer.local_ca.cert_path", cert_path)
    const ca = certificate === undefined ? undefined : Result.getOrUndefined(loadCa(certificate.text, undefined))
    const known = ca?.publicKey.export({ type: "spki", format: "der" })
    return yield* Effect.mapError(findTransitKey(yield* Web, transit, known), (error) =>
      new CaFilesUnusable(
        error._tag === "TransitFailed"
          ? { detail: `signer.local_ca.transit: ${error.detail}.`, mayPass: !error.isFault }
          : { detail: `signer.local_ca.transit: the server has ${error.detail}.` }
      ))
  })

const finders: {
  readonly [S in CaFileSettings["key_source"]]: (
    settings: CaFileSettings
  ) => Effect.Effect<CaKey | undefined, CaFilesUnusable, Web>
} = { file: inFile, pkcs11: inToken, transit: inTransit }

/** Returns the key of a CA, wherever it is. A key in a file may be absent; a key elsewhere must be there. */
export const findCaKey = (settings: CaFileSettings): Effect.Effect<CaKey | undefined, CaFilesUnusable, Web> =>
  finders[settings.key_source](settings)

/** Makes a key in memory. Refuses a kind that the runtime does not have. */
export const generated = (keyType: CaKeyType) =>
  Effect.mapError(
    generateKey(keyType),
    ({ detail }) => new CaFilesUnusable({ detail: `The key cannot be made: it would be ${detail}.` })
  )

/** A key that exists only in the memory of this process, and the file that it belongs in. */
export interface NewCaKey {
  readonly key: CaKey
  readonly file: Omit<NewFile, "suffix">
}

/** Makes a key in the form of its file, which the caller writes. It is encrypted if a passphrase is configured. */
export const makeCaKeyFile = (
  settings: CaFileSettings,
  keyType: CaKeyType
): Effect.Effect<NewCaKey, CaFilesUnusable, Entropy> =>
  Effect.gen(function*() {
    const passphrase = yield* passphraseOf(settings)
    const { privateKey } = yield* generated(keyType)
    const key = yield* Effect.orDie(Effect.fromResult(makeCaKey(privateKey)))
    const content = yield* privateKeyPem(
      privateKey,
      passphrase && { passphrase: passphrase.text, random: yield* (yield* Entropy).bytes(encryptionOctets) }
    )
    return { key, file: { path: settings.key_path, content, mode: 0o600 } }
  })

/**
 * Refuses a place where a CA, or a part of one, exists already. A key without a certificate was made for a request, or a
 * crash left it, so the sentence says how to go on with it.
 */
export const refusePlaceInUse = (
  { cert_path, key_path, key_source }: CaFileSettings
): Effect.Effect<void, CaFilesUnusable> =>
  Effect.gen(function*() {
    const hasCertificate = yield* isTaken(cert_path)
    const hasKey = key_source === "file" && (yield* isTaken(key_path))
    if (!hasCertificate && !hasKey) return
    const detail = !hasCertificate
      ? `signer.local_ca.key_path: ${key_path} exists without a certificate, and nothing that exists is overwritten. Go on with it: \`acme-svc ca csr\` makes its request, and \`acme-svc ca import\` takes the answer.`
      : key_source === "file" && !hasKey
      ? `signer.local_ca.cert_path: ${cert_path} exists without its key ${key_path}, and nothing that exists is overwritten.`
      : `signer.local_ca.cert_path: ${cert_path} exists already, and nothing that exists is overwritten.`
    return yield* new CaFilesUnusable({ detail })
  })
