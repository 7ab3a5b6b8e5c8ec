import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { CrlSigner } from "../../crypto/x509/Crl.ts"
import type { Csr } from "../../crypto/x509/Csr.ts"
import type { CertificateKind } from "../../domain/CertificateKind.ts"
import type { SignerFailed, Subproblem } from "../../domain/JobFailure.ts"
import type { IssuedCrl } from "./IssuedCrl.ts"
import type { TokenStore } from "./relay/Strategy.ts"
import type { Keeper, RelayedCertificate, StoredUpstreamOrder } from "./relay/UpstreamRecord.ts"
import type { RenewalAnswer } from "./relay/UpstreamRenewal.ts"

/** A request to a backend for a certificate. The CSR has been checked against the order. Times are epoch seconds. */
export interface IssueRequest {
  readonly orderId: string
  readonly csr: Csr
  /** The names, in the order of the order's identifiers. */
  readonly names: ReadonlyArray<string>
  /** What the certificate contains. */
  readonly kind: CertificateKind
  /** The dates that the client requested. */
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
  readonly orderedAt: number
  /**
   * The longest lifetime that the credential of the account allows, in seconds. For a local CA, `kind` already has at
   * most this lifetime. A program or an upstream is told this limit, and a certificate with a longer lifetime is
   * refused.
   */
  readonly validityBound: number | undefined
}

/** A certificate that is ready to be stored. */
export interface Issued {
  /** The chain as PEM, leaf first. */
  readonly chain: string
  /**
   * Other chains for the leaf that clients may choose, in the order of their URLs: PEM without the leaf. At most
   * `mostAlternates`.
   */
  readonly alternates?: ReadonlyArray<string>
  /** The serial in lower-case hexadecimal, without leading zero octets. */
  readonly serial: string
  /** The expiry of the certificate, in epoch seconds. */
  readonly notAfter: number
  /** The id of the CA of this service that signed the certificate. Absent if another party signed it. */
  readonly issuer?: string
  /**
   * Records that the certificate is not used. Must be run in this case. Absent if another party signed the certificate,
   * because then it must be revoked there (docs/contribute/decisions/orphaned-certificates.md).
   */
  readonly discarded?: Effect.Effect<void>
}

/** The backend reports that the CSR is at fault. The order becomes `invalid` with badCSR. */
export class CsrRejected extends Data.TaggedError("CsrRejected")<{ readonly detail: string }> {}

/** Any other failure of signing. The attempt may be repeated. `cause` is the word for the audit trail. */
export class SigningFailed extends Data.TaggedError("SigningFailed")<{
  readonly cause: SignerFailed["cause"]
  readonly detail: string
  /** Whether the program was killed at its time limit. */
  readonly isTimedOut?: boolean
  /** Whether the CA of this service or its key is away, so that the profile is degraded until it is back. */
  readonly isAway?: boolean
  /** The suffix of the problem type. Present if the refusal is definite or is `rateLimited`. */
  readonly problemType?: string
  /** What an upstream reports about individual names of the order. */
  readonly subproblems?: ReadonlyArray<Subproblem>
  /** The DER of a certificate that was signed but cannot be used. */
  readonly made?: Uint8Array | undefined
  /**
   * How many seconds to wait before another attempt: at least the wait that an upstream asked for, and at most
   * `atMost`. In a final failure, this is only the wait that the upstream asked for.
   */
  readonly again?: { readonly atLeast: number | undefined; readonly atMost: number }
}> {}

/** A CA that publishes a revocation list. */
export interface CrlIssuer {
  /** The SHA-256 of the CA's SubjectPublicKeyInfo, in lower-case hexadecimal. */
  readonly id: string
  /** The subject key identifier of the CA. Its revocation lists contain this identifier. */
  readonly keyIdentifier: Uint8Array
  /** When the first certificate of the CA's chain ends, in epoch seconds. Nobody needs a list after that. */
  readonly until: number
  readonly sign: CrlSigner
  /** `signer.local_ca.crl_path`: the file to which the list is exported as PEM. */
  readonly path: string
  /** `signer.local_ca.crl_der_path`: a file with the same list in DER, if it is configured. */
  readonly derPath: string | undefined
  /** The record of the last list. It is not lost if the database is restored from a backup. */
  readonly issued: IssuedCrl
}

/** What a relay knows from earlier attempts about its order at the upstream, and where it stores what it learns. */
export interface Relaying<E> {
  readonly stored: StoredUpstreamOrder
  /** The certificate of an upstream that the order replaces. */
  readonly replaced?: RelayedCertificate | undefined
  /** For how many seconds earlier attempts worked on the order. */
  readonly spentSeconds: number
  /** Whether there was an attempt before this one. */
  readonly wasBegun: boolean
  /** Returns how the previous attempt ended, in words for operators, or undefined if that is unknown. */
  readonly lastFailure: Effect.Effect<string | undefined>
  readonly keeper: Keeper<E>
  readonly tokens: TokenStore
  /** Returns whether another attempt has taken over the order, because this attempt stalled for too long. */
  readonly isTakenOver: Effect.Effect<boolean>
}

/**
 * Revokes a certificate at the party that keeps the revocations. The arguments are the DER of the leaf and a reason
 * code of RFC 5280. Also succeeds if the leaf is already revoked.
 */
export type Revoke = (leaf: Uint8Array, reason: number | undefined) => Effect.Effect<void, SigningFailed>

/** What all backends have in common. */
interface Backend {
  /**
   * Returns why the backend cannot sign now, as a sentence for operators, or undefined if it can sign. Absent if the
   * backend cannot know that.
   */
  readonly trouble?: Effect.Effect<string | undefined>
}

/**
 * Asks the party that issued a certificate when it should be renewed (RFC 9773). Fails if a later attempt may get an
 * answer.
 */
export type AskRenewal = (certificate: RelayedCertificate) => Effect.Effect<RenewalAnswer, SigningFailed>

/**
 * Asks an upstream for the certificate of an order that has ended here. Returns the certificate as PEM. Returns
 * undefined if the upstream did not issue a certificate and never will. Fails if that is not yet certain.
 */
export type AskLeftOver = (orderUrl: string) => Effect.Effect<string | undefined, SigningFailed>

/** A backend that signs by itself: the service's own CA, or a program of the operator. */
export interface DirectSigner extends Backend {
  readonly issue: (request: IssueRequest) => Effect.Effect<Issued, CsrRejected | SigningFailed>
  readonly relay?: undefined
  readonly renewal?: undefined
  readonly leftOver?: undefined
  /** Present if another party keeps the revocations. */
  readonly revoke?: Revoke
  /** Returns the id of the CA of this service that issues now. Absent if another party signs. */
  readonly issuing?: Effect.Effect<string | undefined>
  /** The CAs whose revocations this service itself publishes. Absent if another party publishes them. */
  readonly crls?: ReadonlyArray<CrlIssuer>
}

/** A backend whose orders an upstream fulfils. */
export interface RelaySigner extends Backend {
  readonly issue?: undefined
  readonly relay: <E>(
    request: IssueRequest,
    relaying: Relaying<E>
  ) => Effect.Effect<Issued, CsrRejected | SigningFailed | E>
  /**
   * Returns the names of the certificate profiles that the upstream offers, or undefined if the upstream does not answer.
   * Absent while the relay cannot be made.
   */
  readonly upstreamProfiles?: Effect.Effect<ReadonlyArray<string> | undefined>
  readonly renewal: AskRenewal
  readonly revoke: Revoke
  readonly leftOver: AskLeftOver
  readonly crls?: undefined
  readonly issuing?: undefined
}

/** One backend. Only a process with the worker role has backends. */
export type Signer = DirectSigner | RelaySigner

/** The profile is not served by this process. */
export class ProfileNotMounted extends Data.TaggedError("ProfileNotMounted")<{ readonly profile: string }> {}

/** The signing backends of the mounted profiles. Identical `signer` sections share one backend. */
export class Signers extends Context.Service<Signers, {
  readonly of: (profile: string) => Effect.Effect<Signer, ProfileNotMounted>
  /** The CAs of the mounted profiles that publish a list and whose keys can be used now. Each CA is listed once. */
  readonly crlIssuers: ReadonlyArray<CrlIssuer>
  /**
   * Returns the mounted profiles. Each has the reason why nothing can be signed for it now, or undefined if there is no
   * such reason.
   */
  readonly troubles: Effect.Effect<ReadonlyMap<string, string | undefined>>
  /**
   * The backends, each listed once under the text of its section, so that the next configuration can use them again.
   */
  readonly bySection: ReadonlyMap<string, Signer>
}>()("acme/services/signing/Signers") {}
