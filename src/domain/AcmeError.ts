import * as Data from "effect/Data"
import type { BadPublicKey, BadSignatureAlgorithm, MalformedJws } from "../crypto/jose/JoseRefused.ts"
import type { BodyTooLarge, BodyTooSlow, Shed } from "../engine/http/HttpRefused.ts"
import type { Subproblem } from "./JobFailure.ts"
import type { Reached } from "./Limit.ts"
import type { OrderStatus } from "./Order.ts"
import type { Identifier } from "./ProblemDocument.ts"

/** A failure with a sentence for the client. */
export interface Detailed {
  readonly detail: string
}

// Requests that could not be read.
export class Malformed extends Data.TaggedError("Malformed")<Detailed> {}
export class NotFound extends Data.TaggedError("NotFound") {}
/**
 * The profile did not issue the certificate that the request names. `isOtherKey` is true if a certificate has the
 * serial of the certID but another authority key identifier.
 */
export class NoSuchCertificate
  extends Data.TaggedError("NoSuchCertificate")<{ readonly isOtherKey?: boolean | undefined }> {}
/** The profile's signer does not publish the requested resource. */
export class NotPublished extends Data.TaggedError("NotPublished") {}
export class NoSuchPath extends Data.TaggedError("NoSuchPath") {}
export class MethodNotAllowed extends Data.TaggedError("MethodNotAllowed")<{ readonly allow: string }> {}
export class UnsupportedMediaType extends Data.TaggedError("UnsupportedMediaType")<Detailed> {}

// The client and its account.
export class BadNonce extends Data.TaggedError("BadNonce") {}
export class Unauthorized extends Data.TaggedError("Unauthorized")<Detailed> {}
/** An operator has blocked the account. `since` is when, in epoch seconds. */
export class AccountBlocked extends Data.TaggedError("AccountBlocked")<{ readonly since: number }> {}
export class AccountDoesNotExist extends Data.TaggedError("AccountDoesNotExist") {}
/** The policy of the profile refuses the client. */
export class ClientRefused extends Data.TaggedError("ClientRefused")<Detailed> {}
/** A contact is not supported. `index` is the position of the contact in the list. */
export class UnsupportedContact extends Data.TaggedError("UnsupportedContact")<{ readonly index: number }> {}
export class InvalidContact extends Data.TaggedError("InvalidContact")<Detailed> {}
/** The client must agree to the terms. `terms` is their URL. */
export class UserActionRequired extends Data.TaggedError("UserActionRequired")<{ readonly terms: string }> {}

/** The profile requires an external account binding for a new account. */
export class ExternalAccountRequired extends Data.TaggedError("ExternalAccountRequired") {}
/** Another account already has the key. `accountId` is that account. */
export class KeyInUse extends Data.TaggedError("KeyInUse")<{ readonly accountId: string }> {}

// The requested order, certificate or revocation.
export class UnsupportedIdentifier
  extends Data.TaggedError("UnsupportedIdentifier")<{ readonly identifier: Identifier }> {}
export class RejectedIdentifier
  extends Data.TaggedError("RejectedIdentifier")<Detailed & { readonly identifier: Identifier }> {}
export class MalformedIdentifier
  extends Data.TaggedError("MalformedIdentifier")<Detailed & { readonly identifier: Identifier }> {}
/**
 * The certificate profile is not offered. `profile` is the certificate profile that the client requests
 * (draft-ietf-acme-profiles).
 */
/**
 * The client asks for a certificate profile that is not offered to it. `offered` lists the names that are
 * (draft-ietf-acme-profiles).
 */
export class InvalidProfile extends Data.TaggedError("InvalidProfile")<{
  readonly profile: string
  readonly offered: ReadonlyArray<string>
}> {}
/** The policy of the profile refuses the order as a whole, not because of a particular name. */
export class OrderRefused extends Data.TaggedError("OrderRefused")<Detailed> {}
/** No worker can sign for the profile at present. */
export class ProfileDegraded extends Data.TaggedError("ProfileDegraded") {}
/**
 * Several identifiers were refused, each for its own reason. `unlisted` is the number of refused identifiers that are
 * not among the parts.
 */
export class Compound extends Data.TaggedError("Compound")<{
  readonly parts: ReadonlyArray<IdentifierRefused>
  readonly unlisted?: number
}> {}
/** The CA of the certificate revokes nothing at present, because the record of its lists cannot be read. */
export class RevocationStopped extends Data.TaggedError("RevocationStopped") {}
export class AlreadyReplaced extends Data.TaggedError("AlreadyReplaced") {}
/**
 * The order is not ready. `status` is the status of the order that the client sees, if it is known. `because` is a
 * sentence from the order's own error. `expiredAt` is when the order expired, in epoch seconds.
 */
export class OrderNotReady extends Data.TaggedError("OrderNotReady")<{
  readonly status?: OrderStatus
  readonly expiredAt?: number | undefined
  readonly because?: string | undefined
}> {}
export class BadCsr extends Data.TaggedError("BadCsr")<Detailed> {}
export class AlreadyRevoked extends Data.TaggedError("AlreadyRevoked") {}
/** The reason of a revocation is not accepted. `code` is the reason code as the client sent it. */
export class BadRevocationReason extends Data.TaggedError("BadRevocationReason")<{ readonly code: number }> {}
/**
 * The client has reached a configured limit. `again` is the time at which a new request may succeed, in epoch seconds.
 */
export class RateLimited extends Data.TaggedError("RateLimited")<Reached & { readonly again: number }> {}
/**
 * The account has reached the limit of `most` validations in progress. `again` is when the client should ask again, in
 * epoch seconds.
 */
export class TooManyValidations extends Data.TaggedError("TooManyValidations")<{
  readonly most: number
  readonly retryAfter: number
  readonly again: number
}> {}

// Failures of this service.
export class ServerInternal extends Data.TaggedError("ServerInternal")<{ readonly cause?: unknown }> {}
export class ChallengeEnqueueFailed extends Data.TaggedError("ChallengeEnqueueFailed") {}
/**
 * The revocation continues after this answer. If the client repeats the request, that request waits for the revocation.
 */
export class RevocationPending extends Data.TaggedError("RevocationPending") {}
/** The signer failed to revoke the certificate in every attempt, or an operator ended the attempts. */
export class RevocationAbandoned extends Data.TaggedError("RevocationAbandoned") {}
/** The upstream does not accept the reason of the revocation. `detail` is the upstream's own text. */
export class UpstreamRefusedReason extends Data.TaggedError("UpstreamRefusedReason")<Detailed> {}
/** There is no revocation list yet, but a worker will sign one soon. */
export class CrlNotReady extends Data.TaggedError("CrlNotReady") {}
export class HandlerPanicked extends Data.TaggedError("HandlerPanicked") {}
export class DeadlineExceeded extends Data.TaggedError("DeadlineExceeded") {}

// These failures are stored with a challenge or an order. A client reads them when it polls.
/**
 * The service could not reach the host of the name. `port` is the port to which the service is configured to connect.
 */
export class ChallengeUnreachable extends Data.TaggedError("ChallengeUnreachable")<{
  readonly name: string
  readonly port: number
  /** Whether the service would have followed a redirect from that port. The client is not told whether there was one. */
  readonly mayRedirect?: boolean
}> {}
export class ChallengeMismatched extends Data.TaggedError("ChallengeMismatched")<{ readonly name: string }> {}
export class TxtLookupFailed extends Data.TaggedError("TxtLookupFailed")<{ readonly name: string }> {}
export class TxtMismatched extends Data.TaggedError("TxtMismatched")<{
  readonly name: string
  /** The number of TXT records that were found. `compared` is how many of them were compared. */
  readonly answers: number
  readonly compared: number
  /** Whether a compared record has blanks or quotation marks around the expected value. */
  readonly hasBlanks?: boolean | undefined
}> {}
export class HandshakeFailed
  extends Data.TaggedError("HandshakeFailed")<{ readonly name: string; readonly port: number }> {}
export class AlpnCertificateMismatched
  extends Data.TaggedError("AlpnCertificateMismatched")<{ readonly name: string }> {}
export class ValidationAbandoned extends Data.TaggedError("ValidationAbandoned") {}
/** The client deactivated an authorization of the order before finalize. */
export class AuthorizationDeactivated extends Data.TaggedError("AuthorizationDeactivated")<{ readonly name: string }> {}
/** The configuration no longer has the kind of certificate for which the order was placed. */
export class KindRemoved extends Data.TaggedError("KindRemoved")<{ readonly kind: string }> {}
/** The CA that signed the certificate was declared compromised before the certificate was stored. */
export class IssuerCompromised extends Data.TaggedError("IssuerCompromised") {}
/**
 * The account or an authorization of an order ended before the certificate was stored, the account was blocked, or its
 * credential (`isCredentialGone`) was deleted.
 */
export class AuthorityWithdrawn
  extends Data.TaggedError("AuthorityWithdrawn")<{ readonly isCredentialGone: boolean }> {}
export class IssuanceAbandoned extends Data.TaggedError("IssuanceAbandoned") {}
/**
 * A refusal by an upstream. `detail` is the upstream's own text, and `subproblems` are its reports about names of the
 * order.
 */
export interface FromUpstream extends Detailed {
  readonly subproblems?: ReadonlyArray<Subproblem> | undefined
}

/** The upstream refused the order for a reason that the client did not cause. */
export class UpstreamRefusedOrder extends Data.TaggedError("UpstreamRefusedOrder")<FromUpstream> {}
/**
 * The upstream limits requests. If the upstream said when it will accept the next request, `detail` names that time.
 */
export class UpstreamRateLimited extends Data.TaggedError("UpstreamRateLimited")<Detailed> {}
/** The upstream did not finish in time. */
export class UpstreamTooSlow extends Data.TaggedError("UpstreamTooSlow") {}
/** The upstream refused a name of the order. */
export class UpstreamRefusedName extends Data.TaggedError("UpstreamRefusedName")<FromUpstream> {}
/** The upstream certifies no names of that kind. */
export class UpstreamUnsupportedName extends Data.TaggedError("UpstreamUnsupportedName")<FromUpstream> {}
/** The upstream considers a name of the order, or the requested validity, malformed. */
export class UpstreamMalformedOrder extends Data.TaggedError("UpstreamMalformedOrder")<FromUpstream> {}
/** The upstream refused several names, each for its own reason. */
export class UpstreamRefusedNames extends Data.TaggedError("UpstreamRefusedNames")<FromUpstream> {}
/** A CAA record forbids the upstream to issue (RFC 8659). */
export class UpstreamForbiddenByCaa extends Data.TaggedError("UpstreamForbiddenByCaa")<FromUpstream> {}
/** The upstream does not accept the key of the CSR. */
export class UpstreamRefusedKey extends Data.TaggedError("UpstreamRefusedKey")<FromUpstream> {}

export type IdentifierRefused = UnsupportedIdentifier | RejectedIdentifier | MalformedIdentifier

/** Failures that are stored with a challenge, and that end its order. */
export type ChallengeFailed =
  | ChallengeUnreachable
  | ChallengeMismatched
  | TxtLookupFailed
  | TxtMismatched
  | HandshakeFailed
  | AlpnCertificateMismatched
  | ValidationAbandoned

/** Failures that are stored with an order, and that are not failures of a challenge. */
export type IssuanceFailed =
  | BadCsr
  | AuthorizationDeactivated
  | KindRemoved
  | AuthorityWithdrawn
  | IssuerCompromised
  | IssuanceAbandoned
  | UpstreamRefusedOrder
  | UpstreamRefusedName
  | UpstreamUnsupportedName
  | UpstreamMalformedOrder
  | UpstreamRefusedNames
  | UpstreamForbiddenByCaa
  | UpstreamRefusedKey
  | UpstreamRateLimited
  | UpstreamTooSlow

/** Every failure that an ACME client can receive. */
export type AcmeError =
  | Malformed
  | MalformedJws
  | NotFound
  | NoSuchCertificate
  | NotPublished
  | NoSuchPath
  | MethodNotAllowed
  | UnsupportedMediaType
  | BodyTooLarge
  | BodyTooSlow
  | BadNonce
  | Unauthorized
  | AccountBlocked
  | AccountDoesNotExist
  | ClientRefused
  | BadSignatureAlgorithm
  | BadPublicKey
  | UnsupportedContact
  | InvalidContact
  | UserActionRequired
  | ExternalAccountRequired
  | KeyInUse
  | IdentifierRefused
  | InvalidProfile
  | OrderRefused
  | Compound
  | AlreadyReplaced
  | OrderNotReady
  | AlreadyRevoked
  | BadRevocationReason
  | RateLimited
  | TooManyValidations
  | ServerInternal
  | ChallengeEnqueueFailed
  | RevocationPending
  | RevocationAbandoned
  | UpstreamRefusedReason
  | CrlNotReady
  | HandlerPanicked
  | ProfileDegraded
  | RevocationStopped
  | Shed
  | DeadlineExceeded
  | ChallengeFailed
  | IssuanceFailed
