import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Csr } from "../../crypto/x509/Csr.ts"
import { parseCsr } from "../../crypto/x509/Csr.ts"
import { draftLeaf } from "../../crypto/x509/LeafDraft.ts"
import { notGranted } from "../../crypto/x509/RequestedExtensions.ts"
import type { AcmeError } from "../../domain/AcmeError.ts"
import { BadCsr, Malformed, ProfileDegraded } from "../../domain/AcmeError.ts"
import type { CertificateKind } from "../../domain/CertificateKind.ts"
import { problemOf } from "../../domain/Problem.ts"
import type { ProblemDocument } from "../../domain/ProblemDocument.ts"
import type { SignerBackend } from "../../domain/SignerBackend.ts"
import { listMember } from "../../engine/Members.ts"
import { sharedSeconds } from "../../engine/queue/SharedClock.ts"
import { currentSeconds, rfc3339 } from "../../engine/Time.ts"
import { rulesOf, runsScriptsForNames } from "../../services/policy/Policies.ts"
import { urlsOf } from "../../services/signing/ConfiguredCas.ts"
import { Issuers } from "../../services/signing/Issuers.ts"
import { permittedCommonName } from "../../services/signing/PermittedNames.ts"
import type { ProfileConfig } from "../../settings/AppConfig.ts"
import { mostNames } from "../acme/Limits.ts"
import { acceptAll } from "../acme/OrderedNames.ts"
import { windowOf } from "../acme/Validity.ts"
import { judgeCsr } from "../CsrJudgement.ts"

/*
 * Shows which certificate a CSR would become. The names are judged as newOrder judges them, and the CSR as finalize
 * does. Nothing is stored, and no policy is asked, because `filter explain` does that.
 */

/** A CSR, and the order that it would be sent for. */
export interface Supposed {
  readonly csr: Uint8Array
  readonly names: ReadonlyArray<string>
  readonly kind: CertificateKind
}

const accepted = Effect.fnUntraced(function*(profile: ProfileConfig, { csr: der, kind, names: given }: Supposed) {
  const most = mostNames(profile)
  if (given.length === 0) return yield* new Malformed({ detail: "An order names at least one identifier." })
  if (given.length > most) return yield* new Malformed({ detail: `An order names at most ${most} identifiers.` })
  const issuer = (yield* Issuers).of(profile.name, yield* sharedSeconds)
  const names = yield* Effect.fromResult(acceptAll(profile, issuer, given.map((value) => ({ type: "dns", value }))))
  const csr = yield* Effect.fromResult(parseCsr(der, kind.keys))
  yield* judgeCsr(csr, {
    names,
    kind,
    mayCopySubject: profile.signer.backend !== "local_ca",
    isForScripts: runsScriptsForNames(profile.filter, rulesOf(profile.filter))
  })
  return { csr, names }
})

interface Accepted {
  readonly csr: Csr
  readonly names: ReadonlyArray<string>
}

/** Builds the certificate that the local CA of a profile would sign. */
const drafted = Effect.fnUntraced(function*(
  { name, signer }: ProfileConfig,
  kind: CertificateKind,
  { csr, names }: Accepted
) {
  const issuer = (yield* Issuers).of(name, yield* sharedSeconds)
  if (issuer === undefined) return yield* new ProfileDegraded()
  const { certificate, nameConstraints } = issuer
  const commonName = yield* Effect.mapError(
    permittedCommonName(nameConstraints, { csr, kind, names }),
    ({ detail }) => new BadCsr({ detail })
  )
  const now = yield* currentSeconds
  const window = windowOf(kind, issuer, { notBefore: undefined, notAfter: undefined }, { now, orderedAt: now })
  if (Result.isFailure(window)) return yield* new ProfileDegraded()
  const draft = yield* draftLeaf({
    issuerCertDer: certificate,
    crlDistributionPoints: urlsOf(signer.local_ca.crl_distribution_points, issuer.id),
    caIssuerUrls: urlsOf(signer.local_ca.ca_issuer_urls, issuer.id)
  }, {
    spki: csr.spki,
    keyType: csr.keyType,
    names,
    commonName,
    content: kind.content,
    serial: Uint8Array.of(1),
    notBefore: window.success.notBefore,
    notAfter: window.success.notAfter
  })
  return draft ?? (yield* new ProfileDegraded())
})

const certificateOf = (
  { decoded, isSanCritical, policies }: Effect.Success<ReturnType<typeof drafted>>
) => ({
  subject: decoded.subject,
  issuer: decoded.issuer,
  notBefore: rfc3339(decoded.notBefore),
  notAfter: rfc3339(decoded.notAfter),
  keyType: decoded.keyType,
  sans: decoded.sans,
  sansCritical: isSanCritical,
  keyUsage: decoded.keyUsage,
  extendedKeyUsage: decoded.extendedKeyUsage,
  policies,
  crlUrls: decoded.crlUrls,
  caIssuersUrls: decoded.caIssuersUrls
})

/** Returns the certificate of an accepted CSR, if the service itself decides what the certificate contains. */
const described = Effect.fnUntraced(function*(profile: ProfileConfig, supposed: Supposed) {
  const found = yield* accepted(profile, supposed)
  if (profile.signer.backend !== "local_ca") return {}
  const draft = yield* drafted(profile, supposed.kind, found)
  const usages = found.csr.usages.length === 0 ? undefined : supposed.kind.content.usages
  return {
    certificate: certificateOf(draft),
    ...listMember("notGranted", notGranted(found.csr, draft.pem, usages))
  }
})

/** The result of {@link tryCsr}. */
export interface Tried {
  readonly profile: string
  readonly kind: string
  readonly backend: SignerBackend
  readonly outcome: "accepted" | "refused"
  /** The problem document that a client would get. */
  readonly refusal?: ProblemDocument
  /** Absent if another party decides what the certificate contains. */
  readonly certificate?: ReturnType<typeof certificateOf>
  /** The extensions that the CSR asks for and the certificate would lack. */
  readonly notGranted?: ReadonlyArray<string>
}

/** Returns which certificate a CSR would become, or the problem document that a client would get. */
export const tryCsr = Effect.fn("KindTrial.tryCsr")(function*(profile: ProfileConfig, supposed: Supposed) {
  const about = { profile: profile.name, kind: supposed.kind.name, backend: profile.signer.backend }
  return yield* described(profile, supposed).pipe(
    Effect.catchTag("CsrRefused", ({ detail }) => new BadCsr({ detail })),
    Effect.match({
      onFailure: (error: AcmeError): Tried => ({ ...about, outcome: "refused", refusal: problemOf(error) }),
      onSuccess: (found): Tried => ({ ...about, outcome: "accepted", ...found })
    })
  )
})
