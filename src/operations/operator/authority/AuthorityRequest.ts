import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sameBytes } from "../../../crypto/asn1/DerReader.ts"
import { encodePem } from "../../../crypto/asn1/Pem.ts"
import { sha256 } from "../../../crypto/Digest.ts"
import { Entropy } from "../../../crypto/Entropy.ts"
import { keyName } from "../../../crypto/keys/KeyName.ts"
import { encodeSubject } from "../../../crypto/x509/CaCertificate.ts"
import { loadCa } from "../../../crypto/x509/CaMaterial.ts"
import { signCaRequest } from "../../../crypto/x509/CaRequest.ts"
import type { CaKeyType } from "../../../crypto/x509/SelfSigned.ts"
import { isTaken, said, writeNewFiles } from "../../../engine/host/KeyFile.ts"
import type { CaFileSettings } from "../../../services/signing/CaFiles.ts"
import { CaFilesUnusable, readIfPresent, subjectOf } from "../../../services/signing/CaFiles.ts"
import { findCaKey, makeCaKeyFile } from "../../../services/signing/CaPlace.ts"

/* Makes the request of a CA whose root is elsewhere, and the key where it is to live, unless there is one already. */

/** A request, and the key that it is for. */
export interface AuthorityRequest {
  /** The request as PEM. */
  readonly request: string
  readonly keyType: string
  /** The SHA-256 of the SubjectPublicKeyInfo, which both sides compare. */
  readonly keySha256: string
  readonly keySource: CaFileSettings["key_source"]
  /** The file of the key. Undefined if the key is elsewhere. */
  readonly keyPath: string | undefined
  /** Whether the key was made for this request. */
  readonly isNew: boolean
}

/**
 * A CA that already has a certificate for this key keeps its name, because its lists and its leaves name it. Otherwise
 * the name is that of the configuration.
 */
const nameFor = (settings: CaFileSettings, certificate: string | undefined, spki: Uint8Array): Uint8Array => {
  const ca = certificate === undefined ? undefined : Result.getOrUndefined(loadCa(certificate, undefined))
  return ca !== undefined && sameBytes(ca.publicKey.export({ type: "spki", format: "der" }), spki)
    ? ca.subject
    : encodeSubject(subjectOf(settings))
}

/**
 * Makes a request, and writes it to `out` if there is such a path. If the configured key does not exist, it is made. An
 * existing key is never replaced.
 */
export const requestAuthority = Effect.fnUntraced(function*(
  settings: CaFileSettings,
  { keyType, out }: { readonly keyType: CaKeyType | undefined; readonly out: string | undefined }
) {
  const { cert_path, key_path, key_source } = settings
  const certificate = yield* readIfPresent("signer.local_ca.cert_path", cert_path)
  const present = yield* findCaKey(settings)
  if (present === undefined && certificate !== undefined) {
    return yield* new CaFilesUnusable({
      detail: `signer.local_ca.cert_path: ${cert_path} exists without its key ${key_path}, so no other key is made.`
    })
  }
  if (out !== undefined && (yield* isTaken(out))) {
    return yield* new CaFilesUnusable({
      detail: `--out: ${out} exists already, and nothing that exists is overwritten.`
    })
  }
  const made = present === undefined ? yield* makeCaKeyFile(settings, keyType ?? settings.key_type) : undefined
  const key = present ?? made?.key
  if (key === undefined) return yield* Effect.die("a key is there or was made")
  const der = yield* Effect.mapError(
    signCaRequest(key, nameFor(settings, certificate?.text, key.spki)),
    ({ detail }) => new CaFilesUnusable({ detail: `The request cannot be signed: ${detail}.`, mayPass: true })
  )
  const request = encodePem("CERTIFICATE REQUEST", der)
  const suffix = yield* (yield* Entropy).token
  yield* Effect.mapError(
    writeNewFiles([
      ...made === undefined ? [] : [{ ...made.file, suffix }],
      ...out === undefined ? [] : [{ path: out, content: request, mode: 0o644, suffix }]
    ]),
    (error) =>
      new CaFilesUnusable({
        detail: `${error.path} cannot be written: ${said(error)}.`,
        mayPass: error.reason !== "exists"
      })
  )
  const result: AuthorityRequest = {
    request,
    keyType: keyName(key.spki),
    keySha256: sha256(key.spki),
    keySource: key_source,
    keyPath: key_source === "file" ? key_path : undefined,
    isNew: made !== undefined
  }
  return result
})
