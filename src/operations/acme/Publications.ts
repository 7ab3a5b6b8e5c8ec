import * as Effect from "effect/Effect"
import { CrlNotReady, NotPublished, ServerInternal } from "../../domain/AcmeError.ts"
import type { Issuer } from "../../services/signing/Issuers.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { readLedger } from "../../services/signing/Ledger.ts"
import { PublishedCrls } from "../../services/signing/PublishedCrls.ts"
import { ReadHooks } from "../../services/signing/ReadHooks.ts"

/** Returns a part of the profile's own CA. Fails if the profile has no CA of its own. */
const ofIssuer = <A>(profile: string, part: (issuer: Issuer) => A): Effect.Effect<A, NotPublished, Issuers> =>
  Effect.flatMap(Issuers, (issuers) => {
    const issuer = issuers.of(profile)
    return issuer === undefined ? new NotPublished() : Effect.succeed(part(issuer))
  })

/** Returns the trust anchor of a profile as PEM. */
export const anchor = (profile: string) => ofIssuer(profile, ({ anchorPem }) => anchorPem)

/**
 * Returns, as DER, the certificate of the CA that signs a profile's leaves. The `caIssuers` URL points to it (RFC 5280
 * section 4.2.2.1).
 */
export const issuerCertificate = (profile: string) => ofIssuer(profile, ({ certificate }) => certificate)

/**
 * Returns the stored DER revocation list of a profile's CA (docs/decisions/revocation-lists.md, "Serving"). If the
 * profile has no local CA, this is the list that the operator's script returns, if any.
 */
const revocationList = Effect.fnUntraced(function*(profile: string) {
  const issuer = (yield* Issuers).of(profile)
  if (issuer === undefined) {
    const printed = yield* Effect.orElseSucceed((yield* ReadHooks).crl(profile), () => undefined)
    return printed ?? (yield* new NotPublished())
  }
  const der = yield* (yield* PublishedCrls).of(issuer.id)
  if (der !== undefined) return der
  const ledger = yield* Effect.result(readLedger(issuer.ledgerPath))
  return yield* ledger._tag === "Failure" ? new ServerInternal({ cause: ledger.failure }) : new CrlNotReady()
})

/**
 * Everything that a profile publishes about its CA. Each object has its path below the profile and its media type (RFC
 * 2585 section 4 for DER).
 */
export const publications = {
  "/crl": { mediaType: "application/pkix-crl", of: revocationList },
  "/ca.pem": {
    mediaType: "application/x-pem-file",
    of: (profile: string) => Effect.map(anchor(profile), (pem) => Buffer.from(pem))
  },
  "/issuer.cer": { mediaType: "application/pkix-cert", of: issuerCertificate }
} as const
