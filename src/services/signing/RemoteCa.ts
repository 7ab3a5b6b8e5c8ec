import * as Effect from "effect/Effect"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { loadCa } from "../../crypto/x509/CaMaterial.ts"
import { emit } from "../../domain/words/Log.ts"
import { isTaken, readSecretFile } from "../../engine/host/KeyFile.ts"
import type { CaKeySettings, SigningCa } from "./CaFiles.ts"
import { adviseOnLacks, CaFilesUnusable, readCertificateFile, refuseEnded, sectionOf, sentence } from "./CaFiles.ts"
import { makeTokenKey } from "./TokenKey.ts"

/* A CA whose certificate is in a file, and whose key is not. */

/** The source of the key is in trouble. `isFault` means that the configuration must be changed. */
interface KeyTrouble {
  readonly detail: string
  readonly isFault: boolean
}

/** A key that is not in a file, and how to reach it. */
interface RemoteKey extends Required<SigningCa> {
  /** Reaches the key and compares it with the certificate. */
  readonly open: Effect.Effect<void, KeyTrouble>
}

const unusable = (settings: CaKeySettings, detail: string) => {
  const { cert_path, key_source } = settings
  return new CaFilesUnusable({
    detail: `${sectionOf(settings)}: ${cert_path} and the key of ${key_source} cannot be used: ${detail}.`
  })
}

const told = (settings: CaKeySettings, detail: string): string =>
  `${sectionOf(settings)}.${settings.key_source}: ${detail}.`

const keyOf = (settings: CaKeySettings): Effect.Effect<RemoteKey, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { text } = yield* readCertificateFile(settings)
    const { publicKey } = yield* loaded(settings, text, undefined)
    const { key, token } = yield* Effect.mapError(
      Effect.fromResult(makeTokenKey(settings.pkcs11, publicKey)),
      ({ detail }) => unusable(settings, `the CA certificate has ${detail}`)
    )
    const ca = yield* loaded(settings, text, key)
    const trouble = Effect.map(token.trouble, (detail) => detail === undefined ? undefined : told(settings, detail))
    return { ca, key, open: token.open, trouble }
  })

const loaded = (settings: CaKeySettings, text: string, key: Parameters<typeof loadCa>[1]) =>
  Effect.mapError(Effect.fromResult(loadCa(text, key)), ({ detail }) => unusable(settings, detail))

/** Reads the secret that opens the source of the key, to see that it is there. Its owner reads it again when needed. */
const checkSecret = (settings: CaKeySettings) =>
  Effect.mapError(readSecretFile(settings.pkcs11.pin_file), sentence(`${sectionOf(settings)}.pkcs11.pin_file`))

/**
 * Loads the certificate of a CA for signing, and reaches its key. If the key cannot be reached, the CA is in trouble
 * until it can. If a change of the configuration alone can help, fails.
 */
export const loadRemote = (settings: CaKeySettings): Effect.Effect<Required<SigningCa>, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { ca, key, open, trouble } = yield* keyOf(settings)
    const secret = yield* Effect.option(checkSecret(settings))
    if (secret._tag === "Some" && secret.value.permissive) {
      yield* emit("local_ca_key_permissive", { path: settings.pkcs11.pin_file })
    }
    yield* Effect.catch(open, ({ detail, isFault }) => isFault ? unusable(settings, detail) : Effect.void)
    yield* adviseOnLacks(settings.cert_path, ca)
    return { ca, key, trouble }
  })

/** Refuses what {@link loadRemote} would refuse without a look at the key, and also a CA that is not valid now. */
export const checkRemote = (settings: CaKeySettings): Effect.Effect<CaMaterial, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { ca } = yield* keyOf(settings)
    yield* checkSecret(settings)
    const { module_path } = settings.pkcs11
    if (!(yield* isTaken(module_path))) {
      const detail = `${
        sectionOf(settings)
      }.pkcs11.module_path: ${module_path} cannot be used: no such file or directory.`
      return yield* new CaFilesUnusable({ detail, isOutside: true })
    }
    return yield* refuseEnded(settings, ca)
  })

/** Reaches the key, and compares it with the certificate. Nothing is signed. */
export const openRemote = (settings: CaKeySettings): Effect.Effect<SigningCa, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { ca, key, open } = yield* keyOf(settings)
    yield* Effect.mapError(
      open,
      ({ detail, isFault }) => new CaFilesUnusable({ detail: told(settings, detail), mayPass: !isFault })
    )
    return { ca: yield* refuseEnded(settings, ca), key }
  })

/** Does the same as {@link openRemote} for a CA of any dates, and returns why the key cannot be reached as a clause. */
export const tryKey = (settings: CaKeySettings): Effect.Effect<void, { readonly detail: string }> =>
  Effect.flatMap(keyOf(settings), ({ open }) => open)
