import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { certificatesIn, readTlsCertificate } from "../../crypto/x509/TlsCertificate.ts"
import type { FileUnusable, ReadFile } from "../../engine/host/KeyFile.ts"
import { readSecretFile, readTextFile, said } from "../../engine/host/KeyFile.ts"
import { currentMillis, rfc3339 } from "../../engine/Time.ts"
import { PushFailed } from "./AuditReceiver.ts"

/*
 * The files that a push needs. They are read for each attempt, so a renewed certificate or token is used without a
 * reload, and a file that is missing delays the rows but not the start of the service.
 */

const maxRoots = 4 * 1024 * 1024

const unusable = (key: string, path: string, fault: string) => new PushFailed({ detail: `${key}: ${path} ${fault}` })

const readBy = (
  key: string,
  path: string,
  read: Effect.Effect<ReadFile, FileUnusable>
): Effect.Effect<string, PushFailed> =>
  Effect.mapBoth(read, {
    onFailure: (error) => unusable(key, path, `cannot be read: ${said(error)}`),
    onSuccess: ({ text }) => text
  })

/** Reads the CAs of a receiver, as PEM. Returns none if no file is configured. `key` is the configuration key. */
export const rootsIn = (key: string, path: string): Effect.Effect<ReadonlyArray<string>, PushFailed> =>
  path === "" ? Effect.succeed([]) : Effect.flatMap(readBy(key, path, readTextFile(path, maxRoots)), (text) => {
    const found = certificatesIn(text)
    if (found === undefined) return unusable(key, path, "holds a certificate that cannot be read")
    return found.length === 0 ? unusable(key, path, "holds no certificate in PEM") : Effect.succeed(found)
  })

/** Reads the certificate that the service shows, and its key, as PEM. Refuses a certificate that has ended. */
export const pairIn = Effect.fnUntraced(function*(section: string, paths: {
  readonly cert_path: string
  readonly key_path: string
}): Effect.fn.Return<{ readonly cert: string; readonly key: string } | undefined, PushFailed> {
  const { cert_path, key_path } = paths
  if (cert_path === "") return undefined
  const certKey = `${section}.cert_path`
  const cert = yield* readBy(certKey, cert_path, readTextFile(cert_path))
  const { notAfter } = yield* Effect.try({
    try: () => readTlsCertificate(cert),
    catch: () => unusable(certKey, cert_path, "holds no certificate in PEM that can be read")
  })
  if (notAfter.getTime() < (yield* currentMillis)) {
    const end = rfc3339(Math.floor(notAfter.getTime() / 1000))
    return yield* unusable(certKey, cert_path, `holds a certificate that ended at ${end}`)
  }
  const key = yield* readBy(`${section}.key_path`, key_path, readSecretFile(key_path))
  return { cert, key }
})

/** The characters of a bearer token (RFC 6750 section 2.1). */
const tokenForm = /^[A-Za-z0-9._~+/-]+=*$/

/** Reads a bearer token. Returns `undefined` if no file is configured. */
export const tokenIn = (
  key: string,
  path: string
): Effect.Effect<Redacted.Redacted<string> | undefined, PushFailed> =>
  path === "" ? Effect.succeed(undefined) : Effect.flatMap(readBy(key, path, readSecretFile(path)), (text) => {
    const token = text.trim()
    return tokenForm.test(token)
      ? Effect.succeed(Redacted.make(token))
      : unusable(key, path, "holds no bearer token: one line of letters, digits and -._~+/")
  })
