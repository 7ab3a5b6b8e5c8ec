import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs/promises"
import { createSecureContext } from "node:tls"
import { Entropy } from "../../crypto/Entropy.ts"
import { serialFrom } from "../../crypto/x509/Leaf.ts"
import type { TlsCertificate } from "../../crypto/x509/TlsCertificate.ts"
import { readTlsCertificate } from "../../crypto/x509/TlsCertificate.ts"
import { generateTlsPair, isOwnTlsCertificate, renewTlsCertificate } from "../../crypto/x509/TlsPair.ts"
import type { FileUnusable } from "../host/KeyFile.ts"
import { readTextFile, removeLeftovers, replaceFile, said, writeNewFile, writeNewFiles } from "../host/KeyFile.ts"
import { withLockFile } from "../host/LockFile.ts"
import type { Loops } from "../Loops.ts"
import { supervised } from "../Supervised.ts"
import { emit } from "../telemetry/EngineLog.ts"
import { currentMillis, currentSeconds } from "../Time.ts"
import { faultOf } from "./TlsPairFault.ts"

/** The TLS files of a listener cannot be used, or the host prevents the service from creating them. */
export class TlsUnusable extends Data.TaggedError("TlsUnusable")<{
  readonly detail: string
  readonly mayPass?: boolean
}> {
  override get message(): string {
    return this.detail
  }
}

/** The paths of key and certificate, and the host for which both are generated if a file is missing. */
export interface TlsFileSettings {
  /** The name of the listener, in records. */
  readonly listener: string
  /** The section of the configuration that names the files, in refusals. */
  readonly section: string
  readonly cert_path: string
  readonly key_path: string
  /** The host in the listener's base_url. A generated certificate has it as its SAN. */
  readonly host: string
}

/** A certificate chain and its key in PEM, with the facts that decide how the pair is renewed. */
export interface TlsPair {
  readonly cert: string
  readonly key: string
  readonly notAfter: Date
  /**
   * Whether this service made the key and the certificate, and therefore renews them
   * (docs/contribute/decisions/listeners.md, "A pair of its own").
   */
  readonly isOwn: boolean
}

const hourMillis = 3_600_000
const dayMillis = 24 * hourMillis
const expiringMillis = 14 * dayMillis
/**
 * A pair of our own is renewed this many milliseconds before its expiry. The renewal is announced `announcedMillis`
 * before the renewal.
 */
const renewalMillis = dayMillis
const announcedMillis = 30 * dayMillis

const renewalAt = ({ notAfter }: Pick<TlsPair, "notAfter">): number => notAfter.getTime() - renewalMillis

const unusable = (section: string) => (error: FileUnusable) =>
  new TlsUnusable({ detail: `${section}: ${error.path} cannot be used: ${said(error)}.` })

const unwritable = (section: string, path: string, why: string) =>
  new TlsUnusable({ detail: `${section}: ${path} cannot be written: ${why}.`, mayPass: true })

const notMade = (section: string) => ({ _tag }: { readonly _tag: string }) =>
  new TlsUnusable({ detail: `${section}: no pair can be generated: ${_tag}.` })

const readIfPresent = (section: string, path: string) =>
  readTextFile(path).pipe(
    Effect.map(({ text }) => text),
    Effect.catchIf(({ reason }) => reason === "absent", () => Effect.succeed(undefined)),
    Effect.mapError(unusable(section))
  )

/** Renames a file whose counterpart is missing. Never overwrites another file. */
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

const isThere = ({ cert_path, key_path, section }: TlsFileSettings) =>
  Effect.map(
    Effect.all([readIfPresent(section, cert_path), readIfPresent(section, key_path)]),
    (files) => !files.includes(undefined)
  )

/**
 * Generates the pair if a file is missing. Returns whether it was generated. A pair that another process has generated
 * meanwhile stays.
 */
export const generateIfMissing = (settings: TlsFileSettings): Effect.Effect<boolean, TlsUnusable, Entropy> =>
  Effect.gen(function*() {
    const { cert_path, key_path, listener, section } = settings
    const cert = yield* readIfPresent(section, cert_path)
    const key = yield* readIfPresent(section, key_path)
    if (cert !== undefined && key !== undefined) return false
    const now = yield* currentSeconds
    const lone = cert !== undefined ? cert_path : key !== undefined ? key_path : undefined
    const set_aside = lone === undefined ? undefined : yield* setAside(section, lone, now)
    const entropy = yield* Entropy
    const pair = yield* generateTlsPair({ host: settings.host, now, serial: serialFrom(yield* entropy.bytes(16)) })
      .pipe(Effect.mapError(notMade(section)))
    const suffix = yield* entropy.token
    const isWritten = yield* writeNewFiles([
      { path: key_path, content: pair.privateKeyPem, mode: 0o600, suffix },
      { path: cert_path, content: pair.certificatePem, mode: 0o644, suffix }
    ]).pipe(
      Effect.as(true),
      Effect.catch((error) =>
        Effect.flatMap(isThere(settings), (isMade) =>
          error.reason === "exists" && isMade
            ? Effect.succeed(false)
            : unwritable(section, error.path, said(error)))
      )
    )
    if (!isWritten) return false
    yield* emit("tls_pair_generated", {
      listener,
      sha256: readTlsCertificate(pair.certificatePem).fingerprint,
      set_aside
    })
    return true
  })

const matching = (
  { cert_path, key_path, section }: TlsFileSettings,
  { cert, key }: { readonly cert: string; readonly key: string }
) =>
  Effect.try({
    try: () => {
      createSecureContext({ cert, key }) // throws if the key does not belong to the certificate
      return { ...readTlsCertificate(cert), isOwn: isOwnTlsCertificate(cert) }
    },
    catch: () => new TlsUnusable({ detail: `${section}.${faultOf({ cert_path, key_path }, { cert, key })}` })
  })

/**
 * Refuses a pair that {@link load} would refuse. Changes nothing. A missing file is not refused, because {@link load}
 * would make a pair.
 */
export const check = (settings: TlsFileSettings): Effect.Effect<void, TlsUnusable> =>
  Effect.gen(function*() {
    const cert = yield* readIfPresent(settings.section, settings.cert_path)
    const key = yield* readIfPresent(settings.section, settings.key_path)
    if (cert !== undefined && key !== undefined) yield* matching(settings, { cert, key })
  })

const read = (settings: TlsFileSettings): Effect.Effect<TlsPair & TlsCertificate, TlsUnusable> =>
  Effect.gen(function*() {
    const section = settings.section
    const cert = (yield* Effect.mapError(readTextFile(settings.cert_path), unusable(section))).text
    const { permissive, text: key } = yield* Effect.mapError(readTextFile(settings.key_path), unusable(section))
    if (permissive) yield* emit("tls_key_permissive", { listener: settings.listener, path: settings.key_path })
    return { cert, key, ...yield* matching(settings, { cert, key }) }
  })

const successorPath = ({ cert_path }: TlsFileSettings): string => `${cert_path}.next`

/**
 * The next certificate of a pair of our own, for the same key. From the announcement on, it is in a file beside the
 * current certificate, so that clients can be configured to trust both certificates.
 */
const successorOf = (settings: TlsFileSettings, { key }: TlsPair): Effect.Effect<TlsPair, TlsUnusable, Entropy> =>
  Effect.gen(function*() {
    const section = settings.section
    const path = successorPath(settings)
    const now = yield* currentMillis
    const of = (cert: string) => matching({ ...settings, cert_path: path }, { cert, key })
    const there = yield* readIfPresent(section, path)
    if (there !== undefined) {
      if (!isOwnTlsCertificate(there)) {
        return yield* new TlsUnusable({ detail: `${section}: ${path} was not made by this service; move it away.` })
      }
      const known = yield* Effect.option(of(there)) // there is none if the pair was made again in the meantime
      if (known._tag === "Some" && now < renewalAt(known.value)) return { cert: there, key, ...known.value }
    }
    const entropy = yield* Entropy
    const request = { host: settings.host, now: now / 1000, serial: serialFrom(yield* entropy.bytes(16)) }
    const cert = yield* Effect.mapError(renewTlsCertificate(key, request), notMade(section))
    yield* Effect.mapError(
      replaceFile({ path, content: cert, mode: 0o644, suffix: yield* entropy.token }),
      (error) => unwritable(section, error.path, said(error))
    )
    return { cert, key, ...yield* of(cert) }
  })

/**
 * Runs `use` in only one process at a time, because several processes may serve the same pair. The result must be
 * correct even if two of them run `use` at the same time.
 */
const alone = <A, R>(settings: TlsFileSettings, use: Effect.Effect<A, TlsUnusable, R>) =>
  Effect.mapError(withLockFile(`${settings.cert_path}.lock`, use), (error) =>
    error._tag === "TlsUnusable"
      ? error
      : new TlsUnusable({ detail: `${settings.section}: ${error.message}.`, mayPass: true }))

/**
 * Replaces a certificate of our own with its successor when it is time for that, and keeps the old certificate under
 * another name. Returns the pair that is then in the files. Another process or the operator may have written this pair.
 */
const renew = (settings: TlsFileSettings): Effect.Effect<TlsPair, TlsUnusable, Entropy> =>
  alone(
    settings,
    Effect.gen(function*() {
      const { cert_path, listener, section } = settings
      const former = yield* read(settings)
      const now = yield* currentMillis
      if (!former.isOwn || now < renewalAt(former)) return former
      const next = yield* successorOf(settings, former)
      const entropy = yield* Entropy
      const set_aside = `${cert_path}.set-aside-${Math.floor(now / 1000)}`
      yield* writeNewFile({ path: set_aside, content: former.cert, mode: 0o644, suffix: yield* entropy.token }).pipe(
        Effect.andThen(replaceFile({ path: cert_path, content: next.cert, mode: 0o644, suffix: yield* entropy.token })),
        Effect.mapError((error) => unwritable(section, error.path, said(error)))
      )
      yield* Effect.ignore(Effect.tryPromise(() => Fs.unlink(successorPath(settings))))
      const renewed = yield* read(settings)
      yield* emit("tls_pair_renewed", {
        listener,
        sha256: renewed.fingerprint,
        not_after: renewed.notAfter.toISOString(),
        set_aside
      })
      return renewed
    })
  )

/** Returns the pair. If it is our own and due for renewal, returns the renewed pair. A failed renewal is logged. */
const renewedIfDue = <P extends TlsPair>(
  settings: TlsFileSettings,
  pair: P
): Effect.Effect<P | TlsPair, never, Entropy> =>
  Effect.flatMap(currentMillis, (now) =>
    !pair.isOwn || now < renewalAt(pair)
      ? Effect.succeed(pair)
      : Effect.catch(renew(settings), ({ detail }) =>
        Effect.as(emit("tls_pair_renewal_failed", { listener: settings.listener, error: detail }), pair)))

const loaded = (listener: TlsFileSettings["listener"], pair: TlsPair) => {
  const { fingerprint, selfIssued } = readTlsCertificate(pair.cert)
  return emit("tls_certificate_loaded", {
    listener,
    sha256: fingerprint,
    not_after: pair.notAfter.toISOString(),
    self_signed: selfIssued
  })
}

/** Reads the pair. Refuses it if a file cannot be parsed, or if key and certificate do not belong together. */
export const load = (settings: TlsFileSettings): Effect.Effect<TlsPair, TlsUnusable, Entropy> =>
  Effect.gen(function*() {
    const { cert_path, key_path, listener } = settings
    for (const path of [key_path, cert_path, successorPath(settings)]) yield* removeLeftovers(path)
    yield* generateIfMissing(settings)
    const pair = yield* renewedIfDue(settings, yield* read(settings))
    yield* loaded(listener, pair)
    return pair
  })

/** Makes the next certificate. Logs its path, and the time from which it will be served. */
const announce = (settings: TlsFileSettings, pair: TlsPair) =>
  Effect.matchEffect(alone(settings, successorOf(settings, pair)), {
    onFailure: ({ detail }) => emit("tls_pair_renewal_failed", { listener: settings.listener, error: detail }),
    onSuccess: ({ cert }) =>
      emit("tls_pair_renewal_announced", {
        listener: settings.listener,
        not_after: pair.notAfter.toISOString(),
        renewal_at: new Date(renewalAt(pair)).toISOString(),
        path: successorPath(settings),
        sha256: readTlsCertificate(cert).fingerprint
      })
  })

/**
 * Watches the expiry of a pair until the scope closes. A pair of our own is renewed after an announcement, and `use` is
 * called with the old and the new pair. For any other pair there is a daily warning before it expires.
 */
export const watchExpiry = <R>(
  settings: TlsFileSettings,
  pair: TlsPair,
  use: (former: TlsPair, renewed: TlsPair) => Effect.Effect<void, never, R>
): Effect.Effect<void, never, R | Entropy | Loops | Scope.Scope> =>
  Effect.suspend(() => {
    let current = pair
    const look = Effect.gen(function*() {
      const { listener } = settings
      const next = yield* renewedIfDue(settings, current)
      if (next.cert !== current.cert || next.key !== current.key) {
        yield* use(current, next)
        yield* loaded(listener, next)
        current = next
      }
      const { isOwn, notAfter } = current
      const now = yield* currentMillis
      if (!isOwn) {
        if (notAfter.getTime() - now < expiringMillis) {
          yield* emit("tls_certificate_expiring", { listener, not_after: notAfter.toISOString() })
        }
        return dayMillis
      }
      const left = renewalAt(current) - now
      if (left <= 0) return hourMillis
      if (left <= announcedMillis) yield* announce(settings, current)
      return Math.min(dayMillis, left)
    })
    return Effect.asVoid(supervised("tls_expiry", Effect.forever(Effect.flatMap(look, Effect.sleep))))
  })
