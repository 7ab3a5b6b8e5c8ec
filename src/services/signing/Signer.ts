import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { CrlSigner } from "../../crypto/x509/Crl.ts"
import type { Csr } from "../../crypto/x509/Csr.ts"
import type { SignerFailed, Subproblem } from "../../domain/JobFailure.ts"
import type { IssuedCrl } from "./IssuedCrl.ts"
import type { TokenStore } from "./relay/Strategy.ts"
import type { Keeper, RelayedCertificate, StoredUpstreamOrder } from "./relay/UpstreamRecord.ts"
import type { RenewalAnswer } from "./relay/UpstreamRenewal.ts"

/** A request to a backend for a certificate. The CSR has been checked against the order; times are epoch seconds. */
export interface IssueRequest {
  readonly orderId: string
  readonly csr: Csr
  /** The names, in the order of the order's identifiers. */
  readonly names: ReadonlyArray<string>
  /** The dates that the client asked for. */
  readonly notBefore: number | undefined
  readonly notAfter: number | undefined
  readonly orderedAt: number
}

/** A certificate ready to be stored. */
export interface Issued {
  /** PEM, leaf first. */
  readonly chain: string
  /** Lower-case hexadecimal without leading zero octets. */
  readonly serial: string
  /** Epoch seconds. */
  readonly notAfter: number
  /**
   * Run this if the certificate is not used. It records that the certificate was signed in vain. Absent for a
   * certificate of another party, which must be revoked there (docs/decisions/orphaned-certificates.md).
   */
  readonly discarded?: Effect.Effect<void>
}

/** The backend says that the CSR is at fault. The order becomes `invalid` with badCSR. */
export class CsrRejected extends Data.TaggedError("CsrRejected")<{ readonly detail: string }> {}

/** Any other failure. The attempt may be repeated. `cause` is the word for the audit trail. */
export class SigningFailed extends Data.TaggedError("SigningFailed")<{
  readonly cause: SignerFailed["cause"]
  readonly detail: string
  /** Whether the program was killed at its time limit. */
  readonly isTimedOut?: boolean
  /** The suffix of the problem type, for a definite refusal or for `rateLimited`. */
  readonly problemType?: string
  /** What an upstream reports about single names of the order. */
  readonly subproblems?: ReadonlyArray<Subproblem>
  /** The DER of a certificate that was signed but cannot be used. */
  readonly made?: Uint8Array | undefined
  /**
   * The wait before another attempt, in seconds: at least what an upstream asked for, and at most `atMost`. In a final
   * failure it is only what the upstream asked for.
   */
  readonly again?: { readonly atLeast: number | undefined; readonly atMost: number }
}> {}

/** A CA that publishes a revocation list. */
export interface CrlIssuer {
  /** Lower-case hexadecimal SHA-256 of the CA's SubjectPublicKeyInfo. */
  readonly id: string
  /** Its subject key identifier, which its revocation lists have. */
  readonly keyIdentifier: Uint8Array
  readonly sign: CrlSigner
  /** `signer.local_ca.crl_path`: the file to which the list is exported as PEM. */
  readonly path: string
  /** `signer.local_ca.crl_der_path`: a file with the same list in DER, if it is configured. */
  readonly derPath: string | undefined
  /** The record of the last list. It survives if the database is restored from a backup. */
  readonly issued: IssuedCrl
}

/** What a relay knows about its order at the upstream from earlier attempts, and where it stores what it learns. */
export interface Relaying<E> {
  readonly stored: StoredUpstreamOrder
  /** The certificate of an upstream that the order replaces. */
  readonly replaced?: RelayedCertificate | undefined
  /** How many seconds earlier attempts have worked on the order. */
  readonly spentSeconds: number
  /** Whether there was an attempt before this one. */
  readonly wasBegun: boolean
  /** How the previous attempt ended, in words for operators; undefined if that is unknown. */
  readonly lastFailure: Effect.Effect<string | undefined>
  readonly keeper: Keeper<E>
  readonly tokens: TokenStore
  /** Whether another attempt works on the order by now, because this attempt stalled for too long. */
  readonly isTakenOver: Effect.Effect<boolean>
}

/**
 * Revokes a certificate at the party that keeps the revocations. It takes the DER of a leaf and an RFC 5280 code. It
 * succeeds for a leaf that is already revoked.
 */
export type Revoke = (leaf: Uint8Array, reason: number | undefined) => Effect.Effect<void, SigningFailed>

/** What all backends have in common. */
interface Backend {
  /**
   * Why it cannot sign now, in a sentence for operators, or undefined if it can. Absent if the backend cannot know
   * that.
   */
  readonly trouble?: Effect.Effect<string | undefined>
}

/** Asks the party that issued a certificate when to renew it (RFC 9773). Fails if a later attempt may get an answer. */
export type AskRenewal = (certificate: RelayedCertificate) => Effect.Effect<RenewalAnswer, SigningFailed>

/**
 * Asks an upstream for the certificate, as PEM, of an order that has ended here. Returns undefined if the upstream did
 * not issue a certificate and never will. Fails if that is not yet certain.
 */
export type AskLeftOver = (orderUrl: string) => Effect.Effect<string | undefined, SigningFailed>

/** A backend that signs by itself: the service's own CA, or an operator's program. */
export interface DirectSigner extends Backend {
  readonly issue: (request: IssueRequest) => Effect.Effect<Issued, CsrRejected | SigningFailed>
  readonly relay?: undefined
  readonly renewal?: undefined
  readonly leftOver?: undefined
  /** Present if another party keeps the revocations. */
  readonly revoke?: Revoke
  /** Present if this service itself publishes the revocations. */
  readonly crl?: CrlIssuer
}

/** A backend whose orders an upstream fulfils. */
export interface RelaySigner extends Backend {
  readonly issue?: undefined
  readonly relay: <E>(
    request: IssueRequest,
    relaying: Relaying<E>
  ) => Effect.Effect<Issued, CsrRejected | SigningFailed | E>
  readonly renewal: AskRenewal
  readonly revoke: Revoke
  readonly leftOver: AskLeftOver
  readonly crl?: undefined
}

/** One backend. Only a process with the worker role has backends. */
export type Signer = DirectSigner | RelaySigner

/** The profile is not served by this process. */
export class ProfileNotMounted extends Data.TaggedError("ProfileNotMounted")<{ readonly profile: string }> {}

/** The signing backends of the mounted profiles. Identical `signer` sections share one backend. */
export class Signers extends Context.Service<Signers, {
  readonly of: (profile: string) => Effect.Effect<Signer, ProfileNotMounted>
  /** Each CA of the mounted profiles that publishes a list and whose key can be used now, once. */
  readonly crlIssuers: ReadonlyArray<CrlIssuer>
  /**
   * The mounted profiles, each with the reason why nothing can be signed for it now, or undefined if it can be signed
   * for.
   */
  readonly troubles: Effect.Effect<ReadonlyMap<string, string | undefined>>
  /** Each backend once, by the text of its section, so that the next configuration can reuse it. */
  readonly bySection: ReadonlyMap<string, Signer>
}>()("acme/services/signing/Signers") {}
