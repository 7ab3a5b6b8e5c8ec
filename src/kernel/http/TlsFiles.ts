import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs/promises"
import { createSecureContext } from "node:tls"
import { Entropy } from "../../pki/Entropy.ts"
import { serialFrom } from "../../pki/x509/Leaf.ts"
import { readTlsCertificate } from "../../pki/x509/TlsCertificate.ts"
import { generateTlsPair } from "../../pki/x509/TlsPair.ts"
import type { FileUnusable } from "../host/KeyFile.ts"
import { readTextFile, removeLeftovers, said, writeNewFiles } from "../host/KeyFile.ts"
import type { Loops } from "../Loops.ts"
import { supervised } from "../Supervised.ts"
import { emit } from "../telemetry/EventLog.ts"
import { currentMillis, currentSeconds } from "../Time.ts"

/** The TLS files of a listener cannot be used, or the host does not allow to create them. */
export class TlsUnusable extends Data.TaggedError("TlsUnusable")<{
  readonly detail: string
  readonly mayPass?: boolean
}> {
  override get message(): string {
    return this.detail
  }
}

/** Where the pair is, and the host for which it is generated if a file is missing. */
export interface TlsFileSettings {
  readonly listener: "acme" | "admin"
  readonly cert_path: string
  readonly key_path: string
  /** Host of the listener's base_url: the SAN of a generated certificate. */
  readonly host: string
}

/** A certificate chain and its key, PEM, and when the certificate ends. */
export interface TlsPair {
  readonly cert: string
  readonly key: string
  readonly notAfter: Date
}

const expiringMillis = 14 * 86_400_000

/** The sections of the configuration that name the files. */
const sections = { acme: "server.tls", admin: "admin.tls" } as const

const unusable = (section: string) => (error: FileUnusable) =>
  new TlsUnusable({ detail: `${section}: ${error.path} cannot be used: ${said(error)}.` })

const unwritable = (section: string, path: string, why: string) =>
  new TlsUnusable({ detail: `${section}: ${path} cannot be written: ${why}.`, mayPass: true })

const readIfPresent = (section: string, path: string) =>
  readTextFile(path).pipe(
    Effect.map(({ text }) => text),
    Effect.catchIf(({ reason }) => reason === "absent", () => Effect.succeed(undefined)),
    Effect.mapError(unusable(section))
  )

/** Moves a file without its counterpart away under a new name. Nothing is ever overwritten. */
const setAside = (section: string, path: string, now: number) =>
  Effect.tryPromise({
    try: async () => {
      const aside = `${path}.set-aside-${now}`
      await Fs.link(path, aside)
      await Fs.unlink(path)
      return aside
    },
    catch: (cause) => unwritable(section, path, cause instanceof Error ? cause.message : String(cause))
  })

/** Generates the pair if a file is missing. Answers whether it did. */
export const generateIfMissing = (settings: TlsFileSettings): Effect.Effect<boolean, TlsUnusable, Entropy> =>
  Effect.gen(function*() {
    const { cert_path, key_path, listener } = settings
    const section = sections[listener]
    const cert = yield* readIfPresent(section, cert_path)
    const key = yield* readIfPresent(section, key_path)
    if (cert !== undefined && key !== undefined) return false
    const now = yield* currentSeconds
    const lone = cert !== undefined ? cert_path : key !== undefined ? key_path : undefined
    const set_aside = lone === undefined ? undefined : yield* setAside(section, lone, now)
    const entropy = yield* Entropy
    const pair = yield* generateTlsPair({ host: settings.host, now, serial: serialFrom(yield* entropy.bytes(16)) })
      .pipe(
        Effect.mapError(({ _tag }) => new TlsUnusable({ detail: `${section}: no pair can be generated: ${_tag}.` }))
      )
    const suffix = yield* entropy.token
    yield* writeNewFiles([
      { path: key_path, content: pair.privateKeyPem, mode: 0o600, suffix },
      { path: cert_path, content: pair.certificatePem, mode: 0o644, suffix }
    ]).pipe(Effect.mapError((error) => unwritable(section, error.path, said(error))))
    yield* emit("tls_pair_generated", {
      listener,
      sha256: readTlsCertificate(pair.certificatePem).fingerprint,
      set_aside
    })
    return true
  })

const matching = (
  { cert_path, key_path, listener }: TlsFileSettings,
  { cert, key }: { readonly cert: string; readonly key: string }
) =>
  Effect.try({
    try: () => {
      createSecureContext({ cert, key }) // throws if the key does not belong to the certificate
      return readTlsCertificate(cert)
    },
    catch: () =>
      new TlsUnusable({ detail: `${sections[listener]}: ${cert_path} and ${key_path} are no matching PEM pair.` })
  })

/** Refuses the pair that {@link load} would refuse, and changes nothing. Where a file is missing, a pair would be made. */
export const check = (settings: TlsFileSettings): Effect.Effect<void, TlsUnusable> =>
  Effect.gen(function*() {
    const cert = yield* readIfPresent(sections[settings.listener], settings.cert_path)
    const key = yield* readIfPresent(sections[settings.listener], settings.key_path)
    if (cert !== undefined && key !== undefined) yield* matching(settings, { cert, key })
  })

/** Reads the pair. Refuses a pair that does not parse or does not match. */
export const load = (
  settings: TlsFileSettings
): Effect.Effect<TlsPair, TlsUnusable, Entropy> =>
  Effect.gen(function*() {
    const { cert_path, key_path, listener } = settings
    const section = sections[listener]
    for (const path of [key_path, cert_path]) yield* removeLeftovers(path)
    yield* generateIfMissing(settings)
    const cert = (yield* Effect.mapError(readTextFile(cert_path), unusable(section))).text
    const key = (yield* Effect.mapError(readTextFile(key_path), unusable(section))).text
    const { fingerprint, notAfter, selfIssued } = yield* matching(settings, { cert, key })
    yield* emit("tls_certificate_loaded", {
      listener,
      sha256: fingerprint,
      not_after: notAfter.toISOString(),
      self_signed: selfIssued
    })
    return { cert, key, notAfter }
  })

/** Checks now and then daily, as long as the scope lives, and warns if the certificate expires soon. */
export const watchExpiry = (
  listener: TlsFileSettings["listener"],
  notAfter: Date
): Effect.Effect<void, never, Loops | Scope.Scope> =>
  Effect.asVoid(supervised(
    "tls_expiry",
    Effect.repeat(
      Effect.flatMap(currentMillis, (now) =>
        notAfter.getTime() - now < expiringMillis
          ? emit("tls_certificate_expiring", { listener, not_after: notAfter.toISOString() })
          : Effect.void),
      Schedule.spaced("1 day")
    )
  ))
