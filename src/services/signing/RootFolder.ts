import * as Effect from "effect/Effect"
import { splitPem } from "../../crypto/asn1/Pem.ts"
import { basicConstraintsOf } from "../../crypto/x509/CaForm.ts"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { datesFault, loadCa, readCaKey } from "../../crypto/x509/CaMaterial.ts"
import { readCertificate } from "../../crypto/x509/Certificate.ts"
import type { FileUnusable } from "../../engine/host/KeyFile.ts"
import { readTextFile, said } from "../../engine/host/KeyFile.ts"
import { currentSeconds } from "../../engine/Time.ts"
import type { SigningCa } from "./CaFiles.ts"
import { CaFilesUnusable } from "./CaFiles.ts"

/* The folder of a root that is not on the machine of the service: its certificate, its key, and what it has signed. */

/** Returns the paths of the files in the folder of a root. */
export const rootFiles = (folder: string) => ({
  key: `${folder}/root.key`,
  certificate: `${folder}/root.pem`,
  transcript: `${folder}/transcript.txt`,
  /** The certificate with this serial number, followed by the root. Whoever revokes it later has to know it. */
  signed: (serial: string) => `${folder}/issued-${serial}.pem`
})

const unusable = (path: string, detail: string) => new CaFilesUnusable({ detail: `${path} cannot be used: ${detail}.` })

/** Returns a sentence for a file of the folder that could not be read or written. */
export const unusableFile = (error: FileUnusable): CaFilesUnusable =>
  new CaFilesUnusable({
    detail: `${error.path} cannot be used: ${said(error)}.`,
    mayPass: error.reason === "failed"
  })

/** A root whose key was not opened yet. */
export interface LockedRoot {
  readonly ca: CaMaterial
  /** Opens the key. A wrong passphrase is refused. */
  readonly open: (passphrase: string) => Effect.Effect<SigningCa, CaFilesUnusable>
}

/** Reads the root of a folder. Refuses a certificate that cannot be above an issuing CA, and a key in the clear. */
export const readRoot = (folder: string): Effect.Effect<LockedRoot, CaFilesUnusable> =>
  Effect.gen(function*() {
    const { certificate: path, key: keyPath } = rootFiles(folder)
    const { text } = yield* Effect.mapError(readTextFile(path), unusableFile)
    const ca = yield* Effect.mapError(
      Effect.fromResult(loadCa(text, undefined)),
      ({ detail }) => unusable(path, detail)
    )
    const [der = new Uint8Array()] = ca.certificates
    if (!ca.selfSigned) return yield* unusable(path, "it is not the certificate of a root, which signs itself")
    const fields = yield* Effect.orDie(Effect.fromResult(readCertificate(der)))
    if (basicConstraintsOf(fields).pathLength === 0) {
      return yield* unusable(path, "its pathLenConstraint 0 forbids a CA below it")
    }
    const fault = datesFault(ca, yield* currentSeconds)
    if (fault !== undefined) return yield* unusable(path, fault)
    const key = yield* Effect.mapError(readTextFile(keyPath), unusableFile)
    const blocks = splitPem(key.text, "before")
    if (blocks._tag === "Failure" || blocks.success[0]?.label !== "ENCRYPTED PRIVATE KEY") {
      return yield* unusable(keyPath, "it is not an encrypted PKCS#8 key (openssl pkcs8 -topk8 -v2 aes-256-cbc)")
    }
    const open = (passphrase: string) =>
      Effect.gen(function*() {
        const opened = yield* Effect.mapError(
          Effect.fromResult(readCaKey(key.text, passphrase)),
          () => unusable(keyPath, "the passphrase does not open the key, or the key is not decodable")
        )
        const material = yield* Effect.mapError(
          Effect.fromResult(loadCa(text, opened)),
          ({ detail }) => unusable(`${path} with ${keyPath}`, detail)
        )
        return { ca: material, key: opened }
      })
    return { ca, open }
  })
