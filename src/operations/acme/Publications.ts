import * as Effect from "effect/Effect"
import { CrlNotReady, NotPublished, ServerInternal } from "../../domain/AcmeError.ts"
import { sharedSeconds } from "../../engine/queue/SharedClock.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { readLedger } from "../../services/signing/Ledger.ts"
import { PublishedCrls } from "../../services/signing/PublishedCrls.ts"
import { ReadHooks } from "../../services/signing/ReadHooks.ts"

/** Returns the CA that issues for a profile now, or the CA of the profile that has this id. */
const issuerOf = (profile: string, id?: string) =>
  Effect.zipWith(
    Issuers,
    sharedSeconds,
    ({ all, of }, now) =>
      id === undefined ? of(profile, now) : all(profile).find(({ issuer }) => issuer.id === id)?.issuer
  )

/** Returns a part of a CA of the profile. Fails if the profile has no such CA. */
const ofIssuer = <A>(
  profile: string,
  id: string | undefined,
  part: (issuer: Issuer) => A
): Effect.Effect<A, NotPublished, Issuers> =>
  Effect.flatMap(
    issuerOf(profile, id),
    (issuer) => issuer === undefined ? new NotPublished() : Effect.succeed(part(issuer))
  )

/** Returns the trust anchor of a profile as PEM. */
export const anchor = (profile: string) => ofIssuer(profile, undefined, ({ anchorPem }) => anchorPem)

/**
 * Returns, as DER, the certificate of the CA that signs a profile's leaves, or of the CA with this id. The `caIssuers`
 * URL points to it (RFC 5280 section 4.2.2.1).
 */
export const issuerCertificate = (profile: string, id?: string) =>
  ofIssuer(profile, id, ({ certificate }) => certificate)

/**
 * Returns the stored DER revocation list of the CA that issues for a profile, or of the CA with this id
 * (docs/contribute/decisions/revocation-lists.md, "Serving"). If the profile has no local CA, this is the list that the
 * operator's script returns, if any.
 */
const revocationList = Effect.fnUntraced(function*(profile: string, id?: string) {
  const issuer = yield* issuerOf(profile, id)
  if (issuer === undefined) {
    if (id !== undefined) return yield* new NotPublished()
    const printed = yield* Effect.orElseSucceed((yield* ReadHooks).crl(profile), () => undefined)
    return printed ?? (yield* new NotPublished())
  }
  const der = yield* (yield* PublishedCrls).of(issuer.id)
  if (der !== undefined) return der
  const ledger = yield* Effect.result(readLedger(issuer.ledgerPath))
  return yield* ledger._tag === "Failure" ? new ServerInternal({ cause: ledger.failure }) : new CrlNotReady()
})

/** The end of the path of a certificate that is named by the id of its CA. */
const certificateEnd = ".cer"

/**
 * Everything that a profile publishes about its CAs. Each object has its path below the profile, with `{id}` for the id
 * of a CA, and its media type (RFC 2585 section 4 for DER). A path without an id leads to the CA that issues now.
 */
export const publications = {
  "/crl": { mediaType: "application/pkix-crl", of: (profile: string) => revocationList(profile) },
  "/crl/{id}": { mediaType: "application/pkix-crl", of: revocationList },
  "/ca.pem": {
    mediaType: "application/x-pem-file",
    of: (profile: string) => Effect.map(anchor(profile), (pem) => Buffer.from(pem))
  },
  "/issuer.cer": { mediaType: "application/pkix-cert", of: (profile: string) => issuerCertificate(profile) },
  "/issuer/{id}": {
    mediaType: "application/pkix-cert",
    of: (profile: string, id: string) =>
      id.endsWith(certificateEnd)
        ? issuerCertificate(profile, id.slice(0, -certificateEnd.length))
        : new NotPublished()
  }
} as const
