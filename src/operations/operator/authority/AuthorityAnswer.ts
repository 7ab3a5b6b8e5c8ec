import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Entropy } from "../../../crypto/Entropy.ts"
import { judgeAnswer } from "../../../crypto/x509/CaAnswer.ts"
import type { CaFacts } from "../../../crypto/x509/CaFacts.ts"
import { caFacts } from "../../../crypto/x509/CaFacts.ts"
import type { CaMaterial } from "../../../crypto/x509/CaMaterial.ts"
import { loadCa } from "../../../crypto/x509/CaMaterial.ts"
import { replaceFile, said, writeNewFile } from "../../../engine/host/KeyFile.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { CaFileSettings } from "../../../services/signing/CaFiles.ts"
import { CaFilesUnusable, readIfPresent } from "../../../services/signing/CaFiles.ts"
import { findCaKey } from "../../../services/signing/CaPlace.ts"

/* Takes over the certificate that a root elsewhere gave to a CA. */

/** What was taken over. */
export interface ImportedAuthority {
  readonly ca: CaMaterial
  /** The certificates of the chain, the issuing one first. */
  readonly chain: ReadonlyArray<CaFacts>
  /** Where the former certificate is now. Undefined if there was none, or if it stays. */
  readonly setAside: string | undefined
  /** Whether exactly this chain was there already, so that nothing was written. */
  readonly wasThere: boolean
}

const describe = (text: string): string => {
  const ca = Result.getOrUndefined(loadCa(text, undefined))
  return ca === undefined
    ? "something that is not a CA"
    : `${ca.subjectText.split("\n").join(", ")}, SHA-256 ${ca.fingerprint}`
}

/**
 * Judges an answer, and writes it to the configured file with its chain in order. Another certificate is replaced only
 * if `replace` is set, and is kept beside the new one.
 */
export const importAuthority = Effect.fnUntraced(function*(settings: CaFileSettings, text: string, replace: boolean) {
  const { cert_path, key_path } = settings
  const key = yield* findCaKey(settings)
  if (key === undefined) {
    return yield* new CaFilesUnusable({
      detail: `signer.local_ca.key_path: ${key_path} does not exist; \`acme-svc ca csr\` makes the key and its request.`
    })
  }
  const now = yield* currentSeconds
  const ca = yield* Effect.mapError(
    Effect.fromResult(judgeAnswer(text, key.spki, now)),
    ({ detail }) => new CaFilesUnusable({ detail: `The answer cannot be used: ${detail}.` })
  )
  const former = yield* readIfPresent("signer.local_ca.cert_path", cert_path)
  const chain = ca.certificates.flatMap((der) => {
    const facts = caFacts(der)
    return facts === undefined ? [] : [facts]
  })
  const result = (setAside: string | undefined, wasThere: boolean): ImportedAuthority => ({
    ca,
    chain,
    setAside,
    wasThere
  })
  if (former?.text === ca.chainPem) return result(undefined, true)
  if (former !== undefined && !replace) {
    return yield* new CaFilesUnusable({
      detail: `signer.local_ca.cert_path: ${cert_path} holds another certificate (${
        describe(former.text)
      }); --replace puts this one in its place and keeps the other beside it.`
    })
  }
  const entropy = yield* Entropy
  const file = { path: cert_path, content: ca.chainPem, mode: 0o644, suffix: yield* entropy.token }
  const setAside = former === undefined ? undefined : `${cert_path}.set-aside-${now}`
  yield* Effect.mapError(
    former === undefined || setAside === undefined
      ? writeNewFile(file)
      : Effect.andThen(
        writeNewFile({ path: setAside, content: former.text, mode: 0o644, suffix: yield* entropy.token }),
        replaceFile(file)
      ),
    (error) =>
      new CaFilesUnusable({
        detail: `signer.local_ca.cert_path: ${error.path} cannot be written: ${said(error)}.`,
        mayPass: error.reason !== "exists"
      })
  )
  return result(setAside, false)
})
