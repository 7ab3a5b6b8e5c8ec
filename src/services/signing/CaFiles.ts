import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../crypto/asn1/DerReader.ts"
import { sha256 } from "../../crypto/Digest.ts"
import { Entropy } from "../../crypto/Entropy.ts"
import type { CaSubject } from "../../crypto/x509/CaCertificate.ts"
import { encodeSubject, generateCa } from "../../crypto/x509/CaCertificate.ts"
import { caFlaws, forbidding } from "../../crypto/x509/CaForm.ts"
import type { CaKey } from "../../crypto/x509/CaKey.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { datesFault, loadCa, readCaKey } from "../../crypto/x509/CaMaterial.ts"
import { encryptionOctets } from "../../crypto/x509/EncryptedKey.ts"
import { purposeWord } from "../../crypto/x509/KeyPurpose.ts"
import { serialFrom } from "../../crypto/x509/Leaf.ts"
import type { CaKeyType } from "../../crypto/x509/SelfSigned.ts"
import { emit } from "../../domain/words/Log.ts"
import type { FileUnusable } from "../../engine/host/KeyFile.ts"
import { readSecretFile, readTextFile, removeLeftovers, said, writeNewFiles } from "../../engine/host/KeyFile.ts"
import type { TransitSettings } from "../../engine/net/Transit.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { TokenSettings } from "../../engine/token/Token.ts"

/** Where a key is that never is in this process: in a PKCS#11 token, or in the Transit engine of another server. */
export type RemoteSource = "pkcs11" | "transit"

/** Where the certificate and the key of a CA are. */
export interface CaKeySettings {
  /** The section that has these keys. Absent for `signer.local_ca`. */
  readonly section?: string
  readonly cert_path: string
  readonly key_source: "file" | RemoteSource
  readonly key_path: string
  /** The file with the passphrase of the key. Empty if the key is not encrypted. */
  readonly key_passphrase_file: string
  readonly pkcs11: TokenSettings
  readonly transit: TransitSettings
}

const ownSection = "signer.local_ca"

/** Returns the section that has the keys of a CA, for sentences. */
export const sectionOf = ({ section = ownSection }: Pick<CaKeySettings, "section">): string => section

/** The parts of `signer.local_ca` that concern the certificate and the key. */
export interface CaFileSettings extends CaKeySettings {
  readonly key_type: CaKeyType
  readonly subject: {
    readonly common_name: string
    readonly organization: string
    readonly organizational_unit: string
    readonly country: string
    readonly state: string
    readonly locality: string
  }
}

/**
 * The CA of a profile cannot be used. `detail` is a sentence that names the file and says what is wrong. `mayPass`
 * means that nothing is wrong with the files: the host prevented the service from making them.
 */
export class CaFilesUnusable extends Data.TaggedError("CaFilesUnusable")<{
  readonly detail: string
  readonly mayPass?: boolean
  /** Whether the cause is outside the configuration: a file is missing, or cannot be read. */
  readonly isOutside?: boolean
  /** Whether the CA was loaded. If so, only its dates or the record of its lists prevent it from signing. */
  readonly isLoaded?: boolean
}> {
  override get message(): string {
    return this.detail
  }
}

/** A CA and the key with which it signs. */
export interface SigningCa {
  readonly ca: CaMaterial
  readonly key: CaKey
  /** Returns why the key does not sign now, as a sentence, or undefined if it signs. Absent if the key is in memory. */
  readonly trouble?: Effect.Effect<string | undefined>
}

const unusable = (detail: string) => new CaFilesUnusable({ detail })
/** Returns a function that makes a sentence of an error: it names the file, and the key that names the file. */
export const sentence = (key: string) => (error: FileUnusable) =>
  new CaFilesUnusable({ detail: `${key}: ${error.path} cannot be used: ${said(error)}.`, isOutside: true })

/** Reads the certificate of a CA. */
export const readCertificateFile = (settings: Pick<CaKeySettings, "cert_path" | "section">) =>
  Effect.mapError(readTextFile(settings.cert_path), sentence(`${sectionOf(settings)}.cert_path`))

/** Reads a file that `key` of the configuration names. Returns undefined if there is no such file. */
export const readIfPresent = (key: string, path: string) =>
  readTextFile(path).pipe(
    Effect.catchIf(({ reason }) => reason === "absent", () => Effect.succeed(undefined)),
    Effect.mapError(sentence(key))
  )

/** Returns the subject that the configuration gives to a CA. */
export const subjectOf = ({ subject }: CaFileSettings): CaSubject => ({
  commonName: subject.common_name,
  organization: subject.organization,
  organizationalUnit: subject.organizational_unit,
  country: subject.country,
  state: subject.state,
  locality: subject.locality
})

/**
 * Returns whether a CA is a root that was not generated here: it is self-signed, and its name is not the name that a
 * generated CA would have.
 */
export const isSuppliedRoot = (ca: CaMaterial, settings: CaFileSettings): boolean =>
  ca.selfSigned && !sameBytes(ca.subject, encodeSubject(subjectOf(settings)))

/** Returns the passphrase of the key, or `undefined` if the key is not encrypted. */
export const passphraseOf = (settings: CaKeySettings) =>
  settings.key_passphrase_file === ""
    ? Effect.succeed(undefined)
    : Effect.mapError(
      readSecretFile(settings.key_passphrase_file),
      sentence(`${sectionOf(settings)}.key_passphrase_file`)
    )

/** Returns the texts of both files, or `undefined` if neither file exists. Fails if only one of them exists. */
const areThere = (settings: CaKeySettings) =>
  Effect.gen(function*() {
    const { cert_path, key_path } = settings
    const section = sectionOf(settings)
    const certificate = yield* readIfPresent(`${section}.cert_path`, cert_path)
    const key = yield* readIfPresent(`${section}.key_path`, key_path)
    if (certificate !== undefined && key !== undefined) return { certificate: certificate.text, key: key.text }
    if (certificate === undefined && key === undefined) return undefined
    return yield* new CaFilesUnusable({
      detail: key === undefined || section !== ownSection
        ? `${section}: of ${cert_path} and ${key_path} only ${
          key === undefined ? cert_path : key_path
        } exists; both or neither must.`
        : `${section}: of ${cert_path} and ${key_path} only ${key_path} exists; when the request of this key is answered, \`acme-svc ca import\` puts the certificate there.`,
      isOutside: true
    })
  })

/**
 * Refuses a new CA that strict verifiers would refuse. An existing CA is still used, but a warning names its flaws.
 */
export const refuseFlaws = (
  { certificates }: Pick<CaMaterial, "certificates">
): Effect.Effect<void, CaFilesUnusable> => {
  const [flaw] = certificates.flatMap(caFlaws)
  return flaw === undefined
    ? Effect.void
    : unusable(`signer.local_ca: strict verifiers would refuse the CA: ${flaw.replaceAll("_", " ")}.`)
}

/** Warns about every reason for which strict verifiers refuse certificates of this CA. */
export const adviseOnFlaws = (cert_path: string, { certificates, issuerId: issuer }: CaMaterial) =>
  Effect.forEach(
    certificates.flatMap((der) => caFlaws(der).map((reason) => ({ reason, sha256: sha256(der) }))),
    (flaw) => emit("local_ca_incomplete", { issuer, path: cert_path, ...flaw }),
    { discard: true }
  )

/**
 * Returns a function that takes the purposes (OIDs) of a leaf. The function warns once about each purpose that a
 * certificate of the CA does not permit. Verifiers refuse a leaf for that purpose.
 */
export const purposeAdvice = (cert_path: string, { certificates, issuerId: issuer }: CaMaterial) => {
  const known = new Set<string>()
  return (purposes: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.forEach(purposes.filter((one) => !known.has(one)), (purpose) => {
      known.add(purpose)
      const der = forbidding(certificates, purpose)
      const reason = `${purposeWord(purpose)}_not_permitted`
      return der === undefined
        ? Effect.void
        : emit("local_ca_incomplete", { issuer, path: cert_path, sha256: sha256(der), reason })
    }, { discard: true })
}

const unwritten = (error: FileUnusable, mayPass: boolean) =>
  new CaFilesUnusable({
    detail: `signer.local_ca: ${error.path} cannot be written: ${said(error)}.`,
    mayPass,
    isOutside: true
  })

/** Decides what follows if a file of a new CA exists although neither file existed before. */
const collided = (settings: CaKeySettings, error: FileUnusable) =>
  Effect.matchEffect(areThere(settings), {
    // Another process has written one file so far.
    onFailure: () => Effect.fail(unwritten(error, true)),
    onSuccess: (made) => made === undefined ? Effect.fail(unwritten(error, false)) : Effect.succeed(false)
  })

/**
 * Writes a new CA if neither file exists, and returns whether a CA was written. A CA that another process has written
 * meanwhile stays. If only one file exists, fails and replaces nothing. A CA whose key is not in a file is never made.
 */
export const generateIfAbsent = (
  settings: CaFileSettings
): Effect.Effect<boolean, CaFilesUnusable, Entropy> =>
  Effect.gen(function*() {
    const { cert_path, key_path, key_source } = settings
    if (key_source !== "file" || (yield* areThere(settings)) !== undefined) return false
    const passphrase = yield* passphraseOf(settings)
    const entropy = yield* Entropy
    const now = yield* currentSeconds
    const pair = yield* generateCa({
      keyType: settings.key_type,
      encryption: passphrase && { passphrase: passphrase.text, random: yield* entropy.bytes(encryptionOctets) },
      subject: subjectOf(settings),
      now,
      serial: serialFrom(yield* entropy.bytes(16))
    }).pipe(Effect.mapError(({ detail }) => unusable(`signer.local_ca: the CA cannot be generated: ${detail}.`)))
    const made = yield* Effect.mapError(
      Effect.fromResult(loadCa(pair.certificatePem, undefined)),
      ({ detail }) => unusable(`signer.local_ca: the CA cannot be generated: ${detail}.`)
    )
    yield* refuseFlaws(made)
    const suffix = yield* entropy.token
    // The certificate is written last. So a crash can leave a key without a certificate. The next startup refuses that
    // key, and does not replace it.
    const isWritten = yield* writeNewFiles([
      { path: key_path, content: pair.privateKeyPem, mode: 0o600, suffix },
      { path: cert_path, content: pair.certificatePem, mode: 0o644, suffix }
    ]).pipe(
      Effect.as(true),
      Effect.catch((error) =>
        error.reason === "exists" ? collided(settings, error) : Effect.fail(unwritten(error, true))
      )
    )
    if (!isWritten) return false
    yield* emit("local_ca_generated", {
      path: cert_path,
      issuer: made.issuerId,
      not_after: new Date(made.notAfter * 1000).toISOString(),
      key_type: settings.key_type,
      sha256: made.fingerprint
    })
    return true
  })

const read = (
  settings: CaKeySettings,
  texts: { readonly certificate: string; readonly key: string; readonly passphrase: string | undefined }
): Effect.Effect<SigningCa, CaFilesUnusable> =>
  Effect.mapError(
    Effect.fromResult(
      Result.flatMap(
        readCaKey(texts.key, texts.passphrase),
        (key) => Result.map(loadCa(texts.certificate, key), (ca) => ({ ca, key }))
      )
    ),
    ({ detail }) =>
      unusable(
        `${sectionOf(settings)}: ${settings.cert_path} and ${settings.key_path} cannot be used: ${detail}.`
      )
  )

/**
 * Loads the certificate and the key of the CA for signing. Refuses everything that
 * docs/contribute/decisions/local-ca.md, "Loading" lists.
 */
export const loadForSigning = (settings: CaKeySettings): Effect.Effect<SigningCa, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { cert_path, key_path } = settings
    for (const path of [key_path, cert_path]) yield* removeLeftovers(path)
    const certificate = yield* readCertificateFile(settings)
    const key = yield* Effect.mapError(readTextFile(key_path), sentence(`${sectionOf(settings)}.key_path`))
    const passphrase = yield* passphraseOf(settings)
    if (key.permissive) yield* emit("local_ca_key_permissive", { path: key_path })
    if (passphrase?.permissive === true) {
      yield* emit("local_ca_key_permissive", { path: settings.key_passphrase_file })
    }
    const texts = { certificate: certificate.text, key: key.text, passphrase: passphrase?.text }
    const signing = yield* read(settings, texts)
    yield* adviseOnFlaws(cert_path, signing.ca)
    return signing
  })

/** Returns a sentence about a CA whose dates prevent it from signing now. The sentence names the file. */
export const endedText = (settings: Pick<CaKeySettings, "cert_path" | "section">, fault: string): string =>
  `${sectionOf(settings)}.cert_path: ${settings.cert_path} cannot be used: ${fault}.`

/**
 * Refuses what {@link generateIfAbsent} and {@link loadForSigning} would refuse, and also a CA that is not valid now.
 * Changes nothing. Returns the CA, or `undefined` if a new CA would be made.
 */
export const check = (settings: CaKeySettings): Effect.Effect<CaMaterial | undefined, CaFilesUnusable> =>
  Effect.gen(function*() {
    const texts = yield* areThere(settings)
    const passphrase = yield* passphraseOf(settings)
    if (texts === undefined) return undefined
    const { ca } = yield* read(settings, { ...texts, passphrase: passphrase?.text })
    return yield* refuseEnded(settings, ca)
  })

/**
 * Reads the CA and its key, and refuses what {@link check} refuses, and also a CA that does not exist. Changes nothing
 * and logs nothing.
 */
export const openFiles = (settings: CaKeySettings): Effect.Effect<SigningCa, CaFilesUnusable> =>
  Effect.gen(function*() {
    const texts = yield* areThere(settings)
    if (texts === undefined) {
      return yield* new CaFilesUnusable({
        detail: `${sectionOf(settings)}: neither ${settings.cert_path} nor ${settings.key_path} exists.`,
        isOutside: true
      })
    }
    const passphrase = yield* passphraseOf(settings)
    const signing = yield* read(settings, { ...texts, passphrase: passphrase?.text })
    yield* refuseEnded(settings, signing.ca)
    return signing
  })

/** Refuses a CA that is not valid now, and returns every other CA. */
export const refuseEnded = (
  settings: Pick<CaKeySettings, "cert_path" | "section">,
  ca: CaMaterial
): Effect.Effect<CaMaterial, CaFilesUnusable> =>
  Effect.gen(function*() {
    const fault = datesFault(ca, yield* currentSeconds)
    if (fault === undefined) return ca
    return yield* new CaFilesUnusable({ detail: endedText(settings, fault), isOutside: true, isLoaded: true })
  })
