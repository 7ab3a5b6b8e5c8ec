import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { CaMaterial } from "../../crypto/x509/CaMaterial.ts"
import { loadCa } from "../../crypto/x509/CaMaterial.ts"
import { sectionText } from "../../engine/config/Section.ts"
import { readTextFile, said } from "../../engine/host/KeyFile.ts"
import type { SigningProfile } from "./Backends.ts"
import { ProfileUnusable } from "./Backends.ts"
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

const lineOf = (subjectText: string): string => subjectText.split("\n").join(", ")

/**
 * The public side of the local CAs of the mounted profiles. It holds only certificates, and exists in every process
 * that serves.
 */
export class Issuers extends Context.Service<Issuers, {
  readonly of: (profile: string) => Issuer | undefined
  /**
   * The CAs, each listed once under the text of its `signer` section, so that the next configuration can use them
   * again.
   */
  readonly bySection: ReadonlyMap<string, Issuer>
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
        const byProfile = new Map<string, Issuer>()
        const bySection = new Map<string, Issuer>()
        const unread: Array<ProfileUnusable> = []
        for (const { name, signer } of profiles) {
          if (signer.backend !== "local_ca") continue
          const { cert_path, crl_path } = signer.local_ca
          const section = sectionText(signer)
          const known = bySection.get(section) ?? before.get(section)
          if (known !== undefined) {
            bySection.set(section, known)
            byProfile.set(name, known)
            continue
          }
          const refuse = (detail: string, isOutside = false) =>
            new ProfileUnusable({ profile: name, detail, mayPass: false, isOutside, isLoaded: false })
          const file = yield* Effect.result(readTextFile(cert_path))
          if (Result.isFailure(file)) {
            const words = said(file.failure)
            const failure = refuse(
              `signer.local_ca.cert_path: ${cert_path} cannot be used: ${words}; run \`init\`.`,
              true
            )
            if (!mayDegrade(name)) return yield* failure
            // The profile is degraded, so this process serves nothing for this CA until the file is back and the
            // configuration is loaded again.
            unread.push(failure)
            continue
          }
          const { text } = file.success
          const ca = yield* Effect.mapError(
            Effect.fromResult(loadCa(text, undefined)),
            ({ detail }) => refuse(`signer.local_ca.cert_path: ${cert_path} cannot be used: ${detail}.`)
          )
          const {
            anchorPem,
            certificates,
            fingerprint: sha256,
            issuerId: id,
            keyType,
            nameConstraints,
            notAfter,
            notBefore
          } = ca
          const certificate = certificates[0] ?? new Uint8Array()
          const subject = lineOf(ca.subjectText)
          const firstToEnd = { notAfter: ca.firstToEnd.notAfter, subject: lineOf(ca.firstToEnd.subjectText) }
          const ledgerPath = ledgerPathOf(crl_path)
          const issuer = {
            id,
            certificate,
            anchorPem,
            ledgerPath,
            subject,
            sha256,
            keyType,
            nameConstraints,
            notBefore,
            notAfter,
            firstToEnd
          }
          bySection.set(section, issuer)
          byProfile.set(name, issuer)
        }
        return { bySection, unread, of: (profile: string) => byProfile.get(profile) }
      })
    )
}
