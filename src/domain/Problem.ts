import { Data } from "effect"

/** The wire's identifier object. */
interface Identifier {
  readonly type: string
  readonly value: string
}

/**
 * RFC 7807 / RFC 8555 section 6.7, as sent and as stored in `orders.error` and `challenges.error`. A condition the
 * specification lists without a type has none.
 */
export interface ProblemDocument {
  readonly type?: string
  readonly status: number
  readonly detail: string
  readonly identifier?: Identifier
  readonly algorithms?: ReadonlyArray<string>
  readonly subproblems?: ReadonlyArray<
    { readonly type: string; readonly detail: string; readonly identifier: Identifier }
  >
}

interface Detailed {
  readonly detail: string
}

// Requests that could not be read.
export class Malformed extends Data.TaggedError("Malformed")<Detailed> {}
export class NotFound extends Data.TaggedError("NotFound") {}
export class NoSuchPath extends Data.TaggedError("NoSuchPath") {}
export class MethodNotAllowed extends Data.TaggedError("MethodNotAllowed")<{ readonly allow: string }> {}
export class UnsupportedMediaType extends Data.TaggedError("UnsupportedMediaType")<Detailed> {}
export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}
export class BodyTooSlow extends Data.TaggedError("BodyTooSlow") {}

// Who asks.
export class BadNonce extends Data.TaggedError("BadNonce") {}
export class Unauthorized extends Data.TaggedError("Unauthorized")<Detailed> {}
export class AccountDoesNotExist extends Data.TaggedError("AccountDoesNotExist") {}
export class BadSignatureAlgorithm extends Data.TaggedError("BadSignatureAlgorithm")<Detailed> {}
export class BadPublicKey extends Data.TaggedError("BadPublicKey")<Detailed> {}
export class UnsupportedContact extends Data.TaggedError("UnsupportedContact") {}
export class InvalidContact extends Data.TaggedError("InvalidContact")<Detailed> {}
/** `terms` is the URL to agree to. */
export class UserActionRequired extends Data.TaggedError("UserActionRequired")<{ readonly terms: string }> {}

/** The account that has the key. */
export class KeyInUse extends Data.TaggedError("KeyInUse")<{ readonly accountId: string }> {}

// What is asked for.
export class UnsupportedIdentifier
  extends Data.TaggedError("UnsupportedIdentifier")<{ readonly identifier: Identifier }> {}
export class RejectedIdentifier
  extends Data.TaggedError("RejectedIdentifier")<Detailed & { readonly identifier: Identifier }> {}
export class MalformedIdentifier
  extends Data.TaggedError("MalformedIdentifier")<Detailed & { readonly identifier: Identifier }> {}
/** Several identifiers were refused, each for its own reason. */
export class Compound extends Data.TaggedError("Compound")<{ readonly parts: ReadonlyArray<IdentifierRefused> }> {}
export class AlreadyReplaced extends Data.TaggedError("AlreadyReplaced") {}
export class OrderNotReady extends Data.TaggedError("OrderNotReady") {}
export class BadCsr extends Data.TaggedError("BadCsr")<Detailed> {}
/** Seconds after which asking again may succeed. */
export class RateLimited extends Data.TaggedError("RateLimited")<{ readonly retryAfter: number }> {}

// What went wrong here.
export class ServerInternal extends Data.TaggedError("ServerInternal")<{ readonly cause?: unknown }> {}
export class ChallengeEnqueueFailed extends Data.TaggedError("ChallengeEnqueueFailed") {}
export class HandlerPanicked extends Data.TaggedError("HandlerPanicked") {}
export class Shed extends Data.TaggedError("Shed") {}
export class DeadlineExceeded extends Data.TaggedError("DeadlineExceeded") {}

// Stored with a challenge or an order and read when the client polls.
export class ChallengeUnreachable extends Data.TaggedError("ChallengeUnreachable")<{ readonly name: string }> {}
export class ChallengeMismatched extends Data.TaggedError("ChallengeMismatched")<{ readonly name: string }> {}
export class TxtLookupFailed extends Data.TaggedError("TxtLookupFailed")<{ readonly name: string }> {}
export class TxtMismatched extends Data.TaggedError("TxtMismatched")<{
  readonly name: string
  /** Records that were seen. */
  readonly answers: number
}> {}
export class HandshakeFailed extends Data.TaggedError("HandshakeFailed")<{ readonly name: string }> {}
export class AlpnCertificateMismatched
  extends Data.TaggedError("AlpnCertificateMismatched")<{ readonly name: string }> {}
export class ValidationAbandoned extends Data.TaggedError("ValidationAbandoned") {}
export class AuthorityWithdrawn extends Data.TaggedError("AuthorityWithdrawn") {}
export class IssuanceAbandoned extends Data.TaggedError("IssuanceAbandoned") {}

export type IdentifierRefused = UnsupportedIdentifier | RejectedIdentifier | MalformedIdentifier

/** Every failure an ACME client can be told of. */
export type AcmeError =
  | Malformed
  | NotFound
  | NoSuchPath
  | MethodNotAllowed
  | UnsupportedMediaType
  | BodyTooLarge
  | BodyTooSlow
  | BadNonce
  | Unauthorized
  | AccountDoesNotExist
  | BadSignatureAlgorithm
  | BadPublicKey
  | UnsupportedContact
  | InvalidContact
  | UserActionRequired
  | KeyInUse
  | IdentifierRefused
  | Compound
  | AlreadyReplaced
  | OrderNotReady
  | BadCsr
  | RateLimited
  | ServerInternal
  | ChallengeEnqueueFailed
  | HandlerPanicked
  | Shed
  | DeadlineExceeded
  | ChallengeUnreachable
  | ChallengeMismatched
  | TxtLookupFailed
  | TxtMismatched
  | HandshakeFailed
  | AlpnCertificateMismatched
  | ValidationAbandoned
  | AuthorityWithdrawn
  | IssuanceAbandoned

interface Row<E> {
  /** Suffix of the RFC 8555 URN; absent where the specification gives none. */
  readonly type?: string
  readonly status: number
  readonly detail: (error: E) => string
  /** Seconds for a Retry-After header. */
  readonly retryAfter?: (error: E) => number
  readonly more?: (error: E) => Partial<ProblemDocument>
}

/** The algorithms of section 6.2 this service verifies. */
export const signatureAlgorithms = ["ES256", "RS256"] as const

const said = (error: Detailed): string => error.detail
const aboutIdentifier = (error: { readonly identifier: Identifier }) => ({ identifier: error.identifier })
const aboutName = (error: { readonly name: string }) => ({ identifier: { type: "dns", value: error.name } })
const logHasReason = "the server's log has the reason."

/** The one table from failures to problem documents: a failure without a row does not compile. */
const table: { readonly [T in AcmeError["_tag"]]: Row<Extract<AcmeError, { readonly _tag: T }>> } = {
  Malformed: { type: "malformed", status: 400, detail: said },
  NotFound: { type: "malformed", status: 404, detail: () => "There is no such resource for this account." },
  NoSuchPath: { type: "malformed", status: 404, detail: () => "There is nothing at this path." },
  MethodNotAllowed: {
    type: "malformed",
    status: 405,
    detail: (error) => `This path takes ${error.allow}.`
  },
  UnsupportedMediaType: { status: 415, detail: said },
  BodyTooLarge: { type: "malformed", status: 413, detail: () => "The request body is too large." },
  BodyTooSlow: { type: "malformed", status: 408, detail: () => "The request body did not arrive in time." },
  BadNonce: { type: "badNonce", status: 400, detail: () => "The nonce is missing, unknown, used or expired." },
  Unauthorized: { type: "unauthorized", status: 401, detail: said },
  AccountDoesNotExist: { type: "accountDoesNotExist", status: 400, detail: () => "No account has this key or URL." },
  BadSignatureAlgorithm: {
    type: "badSignatureAlgorithm",
    status: 400,
    detail: said,
    more: () => ({ algorithms: signatureAlgorithms })
  },
  BadPublicKey: { type: "badPublicKey", status: 400, detail: said },
  UnsupportedContact: { type: "unsupportedContact", status: 400, detail: () => "A contact must be a mailto: URI." },
  InvalidContact: { type: "invalidContact", status: 400, detail: said },
  UserActionRequired: {
    type: "userActionRequired",
    status: 403,
    detail: (error) => `The terms of service must be agreed to: ${error.terms}`
  },
  KeyInUse: { type: "malformed", status: 409, detail: () => "The new key belongs to an account already." },
  UnsupportedIdentifier: {
    type: "unsupportedIdentifier",
    status: 400,
    detail: () => "Only identifiers of type dns are issued for.",
    more: aboutIdentifier
  },
  RejectedIdentifier: { type: "rejectedIdentifier", status: 403, detail: said, more: aboutIdentifier },
  MalformedIdentifier: { type: "malformed", status: 400, detail: said, more: aboutIdentifier },
  Compound: {
    type: "compound",
    status: 400,
    detail: (error) => `${error.parts.length} identifiers were refused.`,
    more: (error) => {
      const parts = error.parts.map((part) => ({ ...problemOf(part), identifier: part.identifier }))
      return {
        status: Math.max(...parts.map((part) => part.status)),
        subproblems: parts.map(({ detail, identifier, type }) => ({ type: type ?? "about:blank", detail, identifier }))
      }
    }
  },
  AlreadyReplaced: { type: "alreadyReplaced", status: 409, detail: () => "Another order replaces this certificate." },
  OrderNotReady: { type: "orderNotReady", status: 403, detail: () => "The order is not ready to be finalized." },
  BadCsr: { type: "badCSR", status: 400, detail: said },
  RateLimited: {
    type: "rateLimited",
    status: 429,
    detail: () => "Too many challenges of this account are being validated.",
    retryAfter: (error) => error.retryAfter
  },
  ServerInternal: { type: "serverInternal", status: 500, detail: () => `The request failed here; ${logHasReason}` },
  ChallengeEnqueueFailed: { status: 500, detail: () => "The validation could not be queued; ask again." },
  HandlerPanicked: { status: 500, detail: () => `The request failed here; ${logHasReason}` },
  Shed: { status: 503, detail: () => "The service is busy; ask again.", retryAfter: () => 5 },
  DeadlineExceeded: {
    type: "serverInternal",
    status: 503,
    detail: () => "The request took too long; ask again.",
    retryAfter: () => 5
  },
  ChallengeUnreachable: {
    type: "connection",
    status: 400,
    detail: (error) => `Could not fetch the challenge response of ${error.name}; ${logHasReason}`,
    more: aboutName
  },
  ChallengeMismatched: {
    type: "unauthorized",
    status: 403,
    detail: (error) => `The challenge response of ${error.name} was not the expected one; ${logHasReason}`,
    more: aboutName
  },
  TxtLookupFailed: {
    type: "dns",
    status: 400,
    detail: ({ name }) => `The TXT record of _acme-challenge.${name} could not be looked up; ${logHasReason}`,
    more: aboutName
  },
  TxtMismatched: {
    type: "incorrectResponse",
    status: 403,
    detail: ({ answers, name }) =>
      answers === 0
        ? `There is no TXT record at _acme-challenge.${name}.`
        : `Of ${answers} TXT records at _acme-challenge.${name} none is the expected one.`,
    more: aboutName
  },
  HandshakeFailed: {
    type: "tls",
    status: 400,
    detail: ({ name }) => `The host of ${name} did not speak the validation protocol; ${logHasReason}`,
    more: aboutName
  },
  AlpnCertificateMismatched: {
    type: "incorrectResponse",
    status: 403,
    detail: ({ name }) => `The validation certificate of ${name} was not the expected one; ${logHasReason}`,
    more: aboutName
  },
  ValidationAbandoned: {
    type: "serverInternal",
    status: 500,
    detail: () => `The validation was given up; ${logHasReason}`
  },
  AuthorityWithdrawn: {
    type: "unauthorized",
    status: 403,
    detail: () => "The account or an authorization was withdrawn before the certificate was signed."
  },
  IssuanceAbandoned: { type: "serverInternal", status: 500, detail: () => `Issuance was given up; ${logHasReason}` }
}

const urn = "urn:ietf:params:acme:error:"

const rowOf = <E extends AcmeError>(error: E): Row<E> => table[error._tag] as Row<E>

/** Renders a failure: for an answer and for a stored error alike. */
export const problemOf = (error: AcmeError): ProblemDocument => {
  const row = rowOf(error)
  return {
    ...(row.type === undefined ? {} : { type: `${urn}${row.type}` }),
    status: row.status,
    detail: row.detail(error),
    ...row.more?.(error)
  }
}

/** The suffix of the problem type, for logs and metrics; `none` for a condition without one. */
export const problemType = (error: AcmeError): string => rowOf(error).type ?? "none"

/** Seconds for Retry-After, where the failure asks for it. */
export const retryAfter = (error: AcmeError): number | undefined => rowOf(error).retryAfter?.(error)

/** Whether a value is one of the failures above. */
export const isAcmeError = (error: unknown): error is AcmeError =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string" &&
  Object.hasOwn(table, error._tag)
