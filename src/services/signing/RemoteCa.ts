import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { CaKey, UnsupportedIssuer } from "../../crypto/x509/CaKey.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { loadCa } from "../../crypto/x509/CaMaterial.ts"
import { remoteAlgorithm } from "../../crypto/x509/RemoteKey.ts"
import { certificatesIn } from "../../crypto/x509/TlsCertificate.ts"
import { emit } from "../../domain/words/Log.ts"
import { isTaken, readSecretFile, readTextFile } from "../../engine/host/KeyFile.ts"
import { Web } from "../../engine/net/Web.ts"
import type { CaKeySettings, RemoteSource, SigningCa } from "./CaFiles.ts"
import { adviseOnFlaws, CaFilesUnusable, readCertificateFile, refuseEnded, sectionOf, sentence } from "./CaFiles.ts"
import { makeTokenKey } from "./TokenKey.ts"
import { makeTransitKey } from "./TransitKey.ts"

/* A CA whose certificate is in a file, and whose key is not. */

/** The source of the key is in trouble. `isFault` means that the configuration must be changed. */
interface KeyTrouble {
  readonly detail: string
  readonly isFault: boolean
}

/** What has the key, such as a token. */
interface KeySource {
  /** Reaches the key and compares it with the certificate. */
  readonly open: Effect.Effect<void, KeyTrouble>
  /** Returns why the key does not sign now, as a clause. */
  readonly trouble: Effect.Effect<string | undefined>
}

/** One kind of source. */
interface Maker {
  /** Returns the key that belongs to the public key of the certificate. */
  readonly make: (
    settings: CaKeySettings,
    publicKey: CaMaterial["publicKey"]
  ) => Effect.Effect<{ readonly key: CaKey; readonly source: KeySource }, UnsupportedIssuer, Web>
  /** The key of the configuration that names the file with the secret, and that file. */
  readonly secretOf: (settings: CaKeySettings) => { readonly key: string; readonly path: string }
  /** Refuses another file that the source needs and that is not there. */
  readonly check: (settings: CaKeySettings) => Effect.Effect<void, CaFilesUnusable>
}

const unusableFile = (settings: CaKeySettings, key: string, path: string, fault: string) =>
  new CaFilesUnusable({ detail: `${sectionOf(settings)}.${key}: ${path} cannot be used: ${fault}.`, isOutside: true })

const makers: { readonly [S in RemoteSource]: Maker } = {
  pkcs11: {
    make: ({ pkcs11 }, publicKey) => Effect.fromResult(makeTokenKey(pkcs11, publicKey)),
    secretOf: ({ pkcs11 }) => ({ key: "pkcs11.pin_file", path: pkcs11.pin_file }),
    check: Effect.fnUntraced(function*(settings) {
      const { module_path } = settings.pkcs11
      if (yield* isTaken(module_path)) return
      return yield* unusableFile(settings, "pkcs11.module_path", module_path, "no such file or directory")
    })
  },
  transit: {
    make: ({ transit }, publicKey) =>
      Effect.flatMap(Web, (web) => Effect.fromResult(makeTransitKey(web, transit, publicKey))),
    secretOf: ({ transit }) => ({ key: "transit.token_file", path: transit.token_file }),
    check: Effect.fnUntraced(function*(settings) {
      const [key, path] = ["transit.ca_path", settings.transit.ca_path]
      if (path === "") return
      const { text } = yield* Effect.mapError(readTextFile(path), sentence(`${sectionOf(settings)}.${key}`))
      if ((certificatesIn(text) ?? []).length === 0) {
        return yield* unusableFile(settings, key, path, "it holds no certificate in PEM that can be read")
      }
    })
  }
}

/** A CA whose key is elsewhere. */
interface RemoteSettings extends CaKeySettings {
  readonly key_source: RemoteSource
}

/** Returns whether the key of a CA is in no file. */
export const isRemote = <S extends CaKeySettings>(settings: S): settings is S & RemoteSettings =>
  settings.key_source !== "file"

const unusable = (settings: CaKeySettings, detail: string) => {
  const { cert_path, key_source } = settings
  return new CaFilesUnusable({
    detail: `${sectionOf(settings)}: ${cert_path} and the key of ${key_source} cannot be used: ${detail}.`
  })
}

const told = (settings: CaKeySettings, detail: string): string =>
  `${sectionOf(settings)}.${settings.key_source}: ${detail}.`

/** Reads the certificate, and refuses a certificate with which nothing can be signed. */
const readCa = (settings: RemoteSettings): Effect.Effect<CaMaterial, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { text } = yield* readCertificateFile(settings)
    const read = (key: Parameters<typeof loadCa>[1]) =>
      Effect.mapError(Effect.fromResult(loadCa(text, key)), ({ detail }) => unusable(settings, detail))
    const { publicKey } = yield* read(undefined)
    const supported = remoteAlgorithm(publicKey)
    if (Result.isFailure(supported)) {
      return yield* unusable(settings, `the CA certificate has ${supported.failure.detail}`)
    }
    return yield* read({ spki: publicKey.export({ type: "spki", format: "der" }) })
  })

/** A key that is not in a file, and how to reach it. */
interface RemoteKey extends Required<SigningCa> {
  readonly open: KeySource["open"]
}

const keyOf = (settings: RemoteSettings): Effect.Effect<RemoteKey, CaFilesUnusable, Web> =>
  Effect.gen(function*() {
    const ca = yield* readCa(settings)
    const { key, source } = yield* Effect.mapError(
      makers[settings.key_source].make(settings, ca.publicKey),
      ({ detail }) => unusable(settings, `the CA certificate has ${detail}`)
    )
    const trouble = Effect.map(source.trouble, (detail) => detail === undefined ? undefined : told(settings, detail))
    return { ca, key, open: source.open, trouble }
  })

/** Reads the secret that opens the source of the key, to see that it is there. Its owner reads it again when needed. */
const checkSecret = (settings: RemoteSettings) => {
  const { key, path } = makers[settings.key_source].secretOf(settings)
  return Effect.mapBoth(readSecretFile(path), {
    onFailure: sentence(`${sectionOf(settings)}.${key}`),
    onSuccess: ({ permissive }) => ({ path, permissive })
  })
}

/**
 * Loads the certificate of a CA for signing, and reaches its key. If the key cannot be reached, the CA is in trouble
 * until it can. If a change of the configuration alone can help, fails.
 */
export const loadRemote = (settings: RemoteSettings): Effect.Effect<Required<SigningCa>, CaFilesUnusable, Web> =>
  Effect.gen(function*() {
    const { ca, key, open, trouble } = yield* keyOf(settings)
    const secret = yield* Effect.option(checkSecret(settings))
    if (secret._tag === "Some" && secret.value.permissive) {
      yield* emit("local_ca_key_permissive", { path: secret.value.path })
    }
    yield* Effect.catch(open, ({ detail, isFault }) => isFault ? unusable(settings, detail) : Effect.void)
    yield* adviseOnFlaws(settings.cert_path, ca)
    return { ca, key, trouble }
  })

/** Refuses what {@link loadRemote} would refuse without a look at the key, and also a CA that is not valid now. */
export const checkRemote = (settings: RemoteSettings): Effect.Effect<CaMaterial, CaFilesUnusable> =>
  Effect.gen(function*() {
    const ca = yield* readCa(settings)
    yield* checkSecret(settings)
    yield* makers[settings.key_source].check(settings)
    return yield* refuseEnded(settings, ca)
  })

/** Reaches the key, and compares it with the certificate. Nothing is signed. */
export const openRemote = (settings: RemoteSettings): Effect.Effect<SigningCa, CaFilesUnusable, Web> =>
  Effect.gen(function*() {
    const { ca, key, open } = yield* keyOf(settings)
    yield* Effect.mapError(
      open,
      ({ detail, isFault }) => new CaFilesUnusable({ detail: told(settings, detail), mayPass: !isFault })
    )
    return { ca: yield* refuseEnded(settings, ca), key }
  })

/** Does the same as {@link openRemote} for a CA of any dates, and returns why the key cannot be reached as a clause. */
export const tryKey = (settings: RemoteSettings): Effect.Effect<void, { readonly detail: string }, Web> =>
  Effect.flatMap(keyOf(settings), ({ open }) => open)
