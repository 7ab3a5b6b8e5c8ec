import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { loadCa } from "../../crypto/x509/CaMaterial.ts"
import type { Timed } from "../../domain/IssuerState.ts"
import { issuingAt } from "../../domain/IssuerState.ts"
import { sectionText } from "../../engine/config/Section.ts"
import { readTextFile, said } from "../../engine/host/KeyFile.ts"
import type { SigningProfile } from "./Backends.ts"
import { ProfileUnusable } from "./Backends.ts"
import { sectionOf } from "./CaFiles.ts"
import type { LocalCaSettings, OneCaSettings } from "./ConfiguredCas.ts"
import { casOf } from "./ConfiguredCas.ts"
import { ledgerPathOf } from "./Ledger.ts"

/** The public facts about the CA with which a profile signs. */
export interface Issuer {
  /** The SHA-256 of the CA's SubjectPublicKeyInfo, in lower-case hexadecimal. */
  readonly id: string
  /** The CA certificate that issues the leaves, as DER. */
  readonly certificate: Uint8Array
  /** The trust anchor as PEM: the last certificate of the file. */
  readonly anchorPem: string
  /** The path at which an old ledger of revocations may exist. */
  readonly ledgerPath: string
  /** The name of the CA, most specific part last. */
  readonly subject: string
  /** The SHA-256 of the CA's certificate, in lower-case hexadecimal. */
  readonly sha256: string
  readonly keyType: CaMaterial["keyType"]
  /** Where its key is, by the configuration. */
  readonly keySource: OneCaSettings["key_source"]
  readonly nameConstraints: CaMaterial["nameConstraints"]
  /** The start of the CA certificate's validity, in epoch seconds. */
  readonly notBefore: number
  readonly notAfter: number
  /**
   * The certificate that expires first in the chain of the issuer: the time of its expiry, and its name, most specific
   * part last.
   */
  readonly firstToEnd: { readonly notAfter: number; readonly subject: string }
}

/** A CA and the time from which it issues. */
export interface TimedIssuer extends Timed {
  readonly issuer: Issuer
}

const lineOf = (subjectText: string): string => subjectText.split("\n").join(", ")

/**
 * The public side of the local CAs of the mounted profiles. It holds only certificates, and exists in every process
 * that serves.
 */
export class Issuers extends Context.Service<Issuers, {
  /** Returns the CA that issues for a profile at an epoch second of the shared clock. */
  readonly of: (profile: string, now: number) => Issuer | undefined
  /** Returns every CA of a profile: the first one of its section, then the others. */
  readonly all: (profile: string) => ReadonlyArray<TimedIssuer>
  /** The CAs of each `signer` section, under the text of the section, so that the next configuration can use them again. */
  readonly bySection: ReadonlyMap<string, ReadonlyArray<TimedIssuer>>
  /** The profiles whose certificate could not be read, each with the reason. */
  readonly unread: ReadonlyArray<ProfileUnusable>
}>()("acme/services/signing/Issuers") {
  /**
   * Reads the certificates once. Refuses a profile whose certificate is absent or unreadable. A CA of `before` is used
   * again if its section has not changed, like the backend that signs with it.
   */
  static readonly layer = (
    profiles: ReadonlyArray<SigningProfile>,
    before: Issuers["Service"]["bySection"] = new Map(),
    mayDegrade: (profile: string) => boolean = () => false
  ): Layer.Layer<Issuers, ProfileUnusable> =>
    Layer.effect(
      this,
      Effect.gen(function*() {
        const byProfile = new Map<string, ReadonlyArray<TimedIssuer>>()
        const bySection = new Map<string, ReadonlyArray<TimedIssuer>>()
        const unread: Array<ProfileUnusable> = []
        for (const { name, signer } of profiles) {
          if (signer.backend !== "local_ca") continue
          const section = sectionText(signer)
          const known = bySection.get(section) ?? before.get(section)
          const read = known ??
            (yield* readAll(signer.local_ca, { profile: name, mayDegrade: mayDegrade(name), unread }))
          byProfile.set(name, read)
          // A section with a CA that could not be read is read again.
          if (read.length === casOf(signer.local_ca).length) bySection.set(section, read)
        }
        const all = (profile: string) => byProfile.get(profile) ?? []
        return { bySection, unread, all, of: (profile, now) => issuingAt(all(profile), now)?.issuer }
      })
    )
}

interface Reading {
  readonly profile: string
  readonly mayDegrade: boolean
  /** Gets the failures because of which nothing is refused. */
  readonly unread: Array<ProfileUnusable>
}

/**
 * Reads the certificates of the CAs of a section. If a certificate cannot be read and the profile may be degraded, or
 * the CA is retired, this process serves nothing for this CA until the configuration is loaded again.
 */
const readAll = Effect.fnUntraced(function*(settings: LocalCaSettings, { mayDegrade, profile, unread }: Reading) {
  const found: Array<TimedIssuer> = []
  for (const { from, settings: one } of casOf(settings)) {
    const ended = yield* Effect.result(readOne(one, profile))
    if (Result.isSuccess(ended)) {
      found.push({ from, issuer: ended.success })
      continue
    }
    if (!(ended.failure.isOutside && (mayDegrade || from === undefined))) return yield* ended.failure
    unread.push(ended.failure)
  }
  return found
})

const readOne = Effect.fnUntraced(function*(settings: OneCaSettings, profile: string) {
  const { cert_path, crl_path } = settings
  const key = `${sectionOf(settings)}.cert_path`
  const refuse = (detail: string, isOutside = false) =>
    new ProfileUnusable({ profile, detail, mayPass: false, isOutside, isLoaded: false })
  const { text } = yield* Effect.mapError(
    readTextFile(cert_path),
    (failure) => refuse(`${key}: ${cert_path} cannot be used: ${said(failure)}; run \`init\`.`, true)
  )
  const ca = yield* Effect.mapError(
    Effect.fromResult(loadCa(text, undefined)),
    ({ detail }) => refuse(`${key}: ${cert_path} cannot be used: ${detail}.`)
  )
  const { anchorPem, certificates, fingerprint, issuerId, keyType, nameConstraints, notAfter, notBefore } = ca
  return {
    id: issuerId,
    certificate: certificates[0] ?? new Uint8Array(),
    anchorPem,
    ledgerPath: ledgerPathOf(crl_path),
    subject: lineOf(ca.subjectText),
    sha256: fingerprint,
    keyType,
    keySource: settings.key_source,
    nameConstraints,
    notBefore,
    notAfter,
    firstToEnd: { notAfter: ca.firstToEnd.notAfter, subject: lineOf(ca.firstToEnd.subjectText) }
  } satisfies Issuer
})
