import * as Effect from "effect/Effect"
import { sameBytes } from "../../../crypto/asn1/DerReader.ts"
import { encodePem } from "../../../crypto/asn1/Pem.ts"
import { Entropy } from "../../../crypto/Entropy.ts"
import { judgeAnswer } from "../../../crypto/x509/CaAnswer.ts"
import { encodeSubject, signIssuing, signRoot } from "../../../crypto/x509/CaCertificate.ts"
import type { CaFacts } from "../../../crypto/x509/CaFacts.ts"
import { caFacts } from "../../../crypto/x509/CaFacts.ts"
import { makeCaKey } from "../../../crypto/x509/CaKey.ts"
import { loadCa } from "../../../crypto/x509/CaMaterial.ts"
import { encryptionOctets, encryptKey, manyRounds } from "../../../crypto/x509/EncryptedKey.ts"
import { serialFrom } from "../../../crypto/x509/Leaf.ts"
import type { CaKeyType } from "../../../crypto/x509/SelfSigned.ts"
import type { NewFile } from "../../../engine/host/KeyFile.ts"
import { isTaken, makeFolder, said, writeNewFiles } from "../../../engine/host/KeyFile.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { CaFileSettings } from "../../../services/signing/CaFiles.ts"
import { CaFilesUnusable, subjectOf } from "../../../services/signing/CaFiles.ts"
import { findCaKey, generated, makeCaKeyFile, refusePlaceInUse } from "../../../services/signing/CaPlace.ts"
import { rootFiles, unusableFile } from "../../../services/signing/RootFolder.ts"

/*
 * Makes a root, which leaves the machine, and an issuing CA below it (docs/contribute/decisions/local-ca.md, "A root
 * elsewhere").
 */

/** The root that an operator asks for. */
export interface NewRoot {
  /** The folder of the root. It is made if it does not exist. */
  readonly folder: string
  readonly rootDays: number
}

/** What an operator asks for below the root too. Lifetimes are in days. */
export interface NewAuthority extends NewRoot {
  /** The common name of the root. Undefined: that of the issuing CA followed by `Root`. */
  readonly rootName: string | undefined
  readonly days: number
  /** The kind of both keys. Undefined: what the configuration says. */
  readonly keyType: CaKeyType | undefined
  /** The DNS names that the issuing CA may issue for. If there are none, it may issue for every name. */
  readonly permitted: ReadonlyArray<string>
}

/** A root that was made. */
export interface MadeRoot {
  readonly at: number
  readonly root: CaFacts
  /** The folder of the root and its files. */
  readonly folder: string
  readonly rootFiles: ReturnType<typeof rootFiles>
}

/** A root that was made, and the issuing CA below it. */
export interface MadeAuthority extends MadeRoot {
  readonly issuing: CaFacts
  readonly keySource: CaFileSettings["key_source"]
  /** The file of the issuing CA's key, or undefined if the key is elsewhere. */
  readonly keyPath: string | undefined
  readonly isKeyEncrypted: boolean
  readonly certPath: string
}

/** How long before now a certificate begins, for machines whose clocks are behind. */
const backdateSeconds = 3600
const daySeconds = 86_400
const longestCommonName = 64

const refused = (detail: string) => new CaFilesUnusable({ detail })
const failed = ({ detail }: { readonly detail: string }) => refused(`The CA cannot be made: ${detail}.`)

const nameOfRoot = (commonName: string): Effect.Effect<string, CaFilesUnusable> =>
  commonName.length <= longestCommonName
    ? Effect.succeed(commonName)
    : refused(
      `The common name of the root, ${commonName}, has more than ${longestCommonName} characters; --root-name gives another.`
    )

const subjectsOf = (settings: CaFileSettings, rootName: string | undefined) =>
  Effect.gen(function*() {
    const subject = subjectOf(settings)
    const commonName = yield* nameOfRoot(rootName ?? `${subject.commonName === "" ? "CA" : subject.commonName} Root`)
    const [root, issuing] = [encodeSubject({ ...subject, commonName }), encodeSubject(subject)]
    return sameBytes(root, issuing)
      ? yield* refused("--root-name: the root and the issuing CA cannot have the same name.")
      : { root, issuing }
  })

const factsOf = (der: Uint8Array): Effect.Effect<CaFacts, CaFilesUnusable> => {
  const facts = caFacts(der)
  return facts === undefined ? failed({ detail: "its certificate is not decodable" }) : Effect.succeed(facts)
}

const datesOf = (at: number, days: number) => ({ notBefore: at - backdateSeconds, notAfter: at + days * daySeconds })

const refuseRootInUse = (folder: string) =>
  Effect.gen(function*() {
    const { certificate, key, transcript } = rootFiles(folder)
    for (const path of [key, certificate, transcript]) {
      if (!(yield* isTaken(path))) continue
      return yield* refused(
        `--root: ${path} exists already, and nothing that exists is overwritten. \`acme-svc ca sign\` signs requests with a root that exists.`
      )
    }
  })

/** Refuses whatever would be in the way of a root, before anybody is asked for a passphrase. */
export const refuseRoot = ({ folder }: NewRoot, rootName: string) =>
  Effect.andThen(nameOfRoot(rootName), refuseRootInUse(folder))

/** Refuses whatever would be in the way of both CAs, before anybody is asked for a passphrase. */
export const refuseAuthority = (settings: CaFileSettings, { folder, rootName }: NewAuthority) =>
  Effect.gen(function*() {
    yield* subjectsOf(settings, rootName)
    yield* refusePlaceInUse(settings)
    yield* refuseRootInUse(folder)
  })

/** Makes a root in memory. */
const newRoot = Effect.fnUntraced(function*(
  { folder, rootDays }: NewRoot,
  subject: Uint8Array,
  keyType: CaKeyType,
  passphrase: string
) {
  const entropy = yield* Entropy
  const at = yield* currentSeconds
  const { privateKey } = yield* generated(keyType)
  const key = yield* Effect.orDie(Effect.fromResult(makeCaKey(privateKey)))
  const der = yield* Effect.mapError(
    signRoot(key, { subject, serial: serialFrom(yield* entropy.bytes(16)), ...datesOf(at, rootDays) }),
    failed
  )
  const pem = encodePem("CERTIFICATE", der)
  const ca = yield* Effect.mapError(Effect.fromResult(loadCa(pem, key)), failed)
  const made: MadeRoot = { at, root: yield* factsOf(der), folder, rootFiles: rootFiles(folder) }
  const encrypted = yield* encryptKey(privateKey, passphrase, yield* entropy.bytes(encryptionOctets), manyRounds)
  const files = [
    { path: made.rootFiles.key, content: encrypted, mode: 0o600 },
    { path: made.rootFiles.certificate, content: pem, mode: 0o644 }
  ]
  return { above: { ...ca, key }, files, made, pem }
})

const writeAll = (folder: string, files: ReadonlyArray<Omit<NewFile, "suffix">>) =>
  Effect.gen(function*() {
    const suffix = yield* (yield* Entropy).token
    yield* Effect.mapError(makeFolder(folder), unusableFile)
    yield* Effect.mapError(
      writeNewFiles(files.map((file) => ({ ...file, suffix }))),
      (error) =>
        new CaFilesUnusable({
          detail: `${error.path} cannot be written: ${said(error)}. No CA was made.`,
          mayPass: error.reason !== "exists"
        })
    )
  })

/** Makes a root alone, on a machine with no configuration. `transcriptOf` returns the text of the transcript. */
export const makeRoot = Effect.fnUntraced(function*(
  asked: NewRoot,
  { keyType, passphrase, rootName }: {
    readonly rootName: string
    readonly keyType: CaKeyType
    readonly passphrase: string
  },
  transcriptOf: (made: MadeRoot) => string
) {
  yield* refuseRoot(asked, rootName)
  const { files, made } = yield* newRoot(asked, encodeSubject({ commonName: rootName }), keyType, passphrase)
  const transcript = { path: made.rootFiles.transcript, content: transcriptOf(made), mode: 0o644 }
  yield* writeAll(asked.folder, [...files, transcript])
  return made
})

/**
 * Makes both CAs and writes their files. The certificate of the issuing CA comes almost last: a crash before it leaves a
 * key, which `ca csr` and `ca import` go on with. `transcriptOf` returns the text of the transcript.
 */
export const makeAuthority = Effect.fnUntraced(function*(
  settings: CaFileSettings,
  asked: NewAuthority,
  passphrase: string,
  transcriptOf: (made: MadeAuthority) => string
) {
  yield* refuseAuthority(settings, asked)
  const { days, folder, permitted } = asked
  const keyType = asked.keyType ?? settings.key_type
  const entropy = yield* Entropy
  const subjects = yield* subjectsOf(settings, asked.rootName)
  // A key that is in no file must be there before the root is made.
  const present = yield* findCaKey(settings)
  const own = present === undefined ? yield* makeCaKeyFile(settings, keyType) : undefined
  const { above, files, made, pem } = yield* newRoot(asked, subjects.root, keyType, passphrase)
  const { spki } = present ?? own?.key ?? above.key
  const der = yield* Effect.mapError(
    signIssuing(above, {
      subject: subjects.issuing,
      spki,
      serial: serialFrom(yield* entropy.bytes(16)),
      ...datesOf(made.at, days),
      permitted
    }),
    failed
  )
  const chainPem = encodePem("CERTIFICATE", der) + pem
  yield* Effect.mapError(Effect.fromResult(judgeAnswer(chainPem, spki, made.at)), failed)
  const result: MadeAuthority = {
    ...made,
    issuing: yield* factsOf(der),
    keySource: settings.key_source,
    keyPath: own?.file.path,
    isKeyEncrypted: own !== undefined && settings.key_passphrase_file !== "",
    certPath: settings.cert_path
  }
  yield* writeAll(folder, [
    ...files,
    ...own === undefined ? [] : [own.file],
    { path: made.rootFiles.signed(result.issuing.serial), content: chainPem, mode: 0o644 },
    { path: settings.cert_path, content: chainPem, mode: 0o644 },
    { path: made.rootFiles.transcript, content: transcriptOf(result), mode: 0o644 }
  ])
  return result
})
