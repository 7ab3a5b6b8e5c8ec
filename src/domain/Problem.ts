import { shownName } from "../crypto/Character.ts"
import { rfc3339 } from "../engine/Time.ts"
import type { AcmeError, Detailed } from "./AcmeError.ts"
import { limitedThings } from "./Limit.ts"
import type { Identifier, ProblemDocument } from "./ProblemDocument.ts"
import { acmeError } from "./ProblemDocument.ts"
import { upstreamProblems } from "./UpstreamProblems.ts"

interface Row<E> {
  /** The suffix of the URN in RFC 8555 section 6.7. Absent if no type of the RFC fits. */
  readonly type?: string
  readonly status: number
  readonly detail: (error: E) => string
  /** Returns the number of seconds for a Retry-After header. */
  readonly retryAfter?: (error: E) => number
  readonly more?: (error: E) => Partial<ProblemDocument>
}

const said = (error: Detailed): string => error.detail
/**
 * Returns a detail that contains the refused name, because clients show only the detail. The message of a policy may
 * already end with the name.
 */
const saidOfName = ({ detail, identifier: { value } }: Detailed & { readonly identifier: Identifier }): string =>
  value !== "" && detail.endsWith(` ${value}`) ? detail : `${shownName(value)}: ${detail}`

/** Returns a sentence that states the first refusal, and how many more there are. */
const saidOfNames = (parts: ReadonlyArray<AcmeError>, unlisted: number): string => {
  const [first] = parts
  const said = first === undefined ? "" : rowOf(first).detail(first).replace(/\.$/, "")
  const more = parts.length - 1 + unlisted
  const hidden = unlisted === 0 ? "" : `, ${unlisted} of which are not listed here`
  return more === 1
    ? `${said}; and 1 more identifier was refused.`
    : `${said}; and ${more} more identifiers were refused${hidden}.`
}

const aboutIdentifier = (error: { readonly identifier: Identifier }) => ({ identifier: error.identifier })
const aboutName = (error: { readonly name: string }) => ({ identifier: { type: "dns", value: error.name } })
const logHasReason = "the server's log has the reason."

/** The only table that maps failures to problem documents. If a failure has no row, this does not compile. */
const table = {
  Malformed: { type: "malformed", status: 400, detail: said },
  MalformedJws: { type: "malformed", status: 400, detail: said },
  NotFound: { type: "malformed", status: 404, detail: () => "There is no such resource for this account." },
  NoSuchCertificate: {
    type: "malformed",
    status: 404,
    detail: ({ isOtherKey = false }) =>
      isOtherKey
        ? "This profile has issued no such certificate: one with this serial has another authority key identifier."
        : "This profile has issued no such certificate."
  },
  NotPublished: {
    type: "malformed",
    status: 404,
    detail: () => "This profile publishes no such resource: its signer does not have it."
  },
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
  ClientRefused: { type: "unauthorized", status: 403, detail: said },
  AccountBlocked: {
    type: "unauthorized",
    status: 403,
    detail: ({ since }) =>
      `The operator of this server has blocked the account since ${rfc3339(since)}: it cannot order certificates. `
      + "It can still revoke those that it has. Ask the operator."
  },
  AccountDoesNotExist: { type: "accountDoesNotExist", status: 400, detail: () => "No account has this key or URL." },
  BadSignatureAlgorithm: {
    type: "badSignatureAlgorithm",
    status: 400,
    detail: said,
    more: ({ algorithms }) => ({ algorithms })
  },
  BadPublicKey: { type: "badPublicKey", status: 400, detail: said },
  UnsupportedContact: {
    type: "unsupportedContact",
    status: 400,
    detail: ({ index }) => `The member contact[${index}] must be a mailto: URI.`
  },
  InvalidContact: { type: "invalidContact", status: 400, detail: said },
  UserActionRequired: {
    type: "userActionRequired",
    status: 403,
    detail: (error) => `The client must agree to the terms of service: ${error.terms}`,
    more: (error) => ({ instance: error.terms })
  },
  ExternalAccountRequired: {
    type: "externalAccountRequired",
    status: 403,
    detail: () => "A new account needs an external account binding here; ask the operator for a credential."
  },
  KeyInUse: { type: "malformed", status: 409, detail: () => "The new key belongs to an account already." },
  UnsupportedIdentifier: {
    type: "unsupportedIdentifier",
    status: 400,
    detail: ({ identifier }) =>
      saidOfName({ identifier, detail: "Certificates are issued for identifiers of type dns only." }),
    more: aboutIdentifier
  },
  InvalidProfile: {
    type: "invalidProfile",
    status: 400,
    detail: ({ offered, profile }) =>
      offered.length === 0
        ? `This server offers no certificate profiles, so it does not offer ${shownName(profile)}; order without one.`
        : `The certificate profile ${shownName(profile)} is not offered; ${offered.join(", ")} ${
          offered.length === 1 ? "is" : "are"
        }.`
  },
  KindRemoved: {
    type: "invalidProfile",
    status: 400,
    detail: ({ kind }) => `The certificate profile ${kind} of the order is no longer offered; place a new order.`
  },
  RejectedIdentifier: { type: "rejectedIdentifier", status: 403, detail: saidOfName, more: aboutIdentifier },
  OrderRefused: { type: "rejectedIdentifier", status: 403, detail: said },
  MalformedIdentifier: { type: "malformed", status: 400, detail: saidOfName, more: aboutIdentifier },
  Compound: {
    type: "compound",
    status: 400,
    detail: ({ parts, unlisted = 0 }) => saidOfNames(parts, unlisted),
    more: (error) => {
      const parts = error.parts.map((part) => ({ ...problemOf(part), identifier: part.identifier }))
      return {
        status: Math.max(...parts.map((part) => part.status)),
        subproblems: parts.map(({ detail, identifier, type }) => ({ type: type ?? "about:blank", detail, identifier }))
      }
    }
  },
  AlreadyReplaced: { type: "alreadyReplaced", status: 409, detail: () => "Another order replaces this certificate." },
  OrderNotReady: {
    type: "orderNotReady",
    status: 403,
    detail: ({ because, expiredAt, status = "not ready" }) => {
      const said = expiredAt === undefined
        ? `The order is ${status}; it can be finalized only once, and only when it is ready.`
        : `The order expired at ${rfc3339(expiredAt)}; place a new one.`
      return because === undefined ? said : `${said} ${because}`
    }
  },
  BadCsr: { type: "badCSR", status: 400, detail: said },
  AlreadyRevoked: { type: "alreadyRevoked", status: 400, detail: () => "The certificate is revoked already." },
  BadRevocationReason: {
    type: "badRevocationReason",
    status: 400,
    detail: ({ code }) => `The revocation reason ${code} is not accepted; 0 to 6 and 8 to 10 are.`
  },
  RateLimited: {
    type: "rateLimited",
    status: 429,
    detail: ({ again, limit, most, windowSeconds }) => {
      const window = windowSeconds === undefined ? "at once" : `within ${windowSeconds} s`
      const key = limit === "orders_per_day" ? "" : ` (limits.${limit})`
      return `At most ${most} ${limitedThings[limit]} are allowed ${window}${key}; try again at ${rfc3339(again)}.`
    },
    retryAfter: (error) => error.retryAfter
  },
  TooManyValidations: {
    type: "rateLimited",
    status: 429,
    detail: ({ again, most }) =>
      `No more than ${most} challenges of this account are validated at once (challenge.max_in_flight_per_account); try again at ${
        rfc3339(again)
      }.`,
    retryAfter: (error) => error.retryAfter
  },
  ServerInternal: { type: "serverInternal", status: 500, detail: () => `The request failed here; ${logHasReason}` },
  ChallengeEnqueueFailed: { status: 500, detail: () => "The validation could not be queued; ask again." },
  RevocationPending: {
    type: "serverInternal",
    status: 503,
    detail: () => "The revocation is not finished yet; ask again.",
    retryAfter: () => 1
  },
  RevocationAbandoned: {
    type: "serverInternal",
    status: 500,
    detail: () => `The revocation was given up, and the certificate is not revoked; ${logHasReason}`
  },
  CrlNotReady: {
    type: "serverInternal",
    status: 503,
    detail: () => "The revocation list has not been signed yet; ask again.",
    retryAfter: () => 5
  },
  ProfileDegraded: {
    type: "serverInternal",
    status: 503,
    detail: () => "This endpoint cannot issue certificates at present; its operators can see why. Ask again later.",
    retryAfter: () => 60
  },
  RevocationStopped: {
    type: "serverInternal",
    status: 503,
    detail: () =>
      "The CA of this certificate cannot revoke at present, so the certificate is not revoked; its operators can see why. Ask again later.",
    retryAfter: () => 60
  },
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
    detail: ({ mayRedirect = false, name, port }) =>
      `Could not fetch the challenge response of ${name} at port ${port}${
        mayRedirect ? " or where this port redirects" : ""
      }; ${logHasReason}`,
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
    detail: ({ answers, compared, hasBlanks = false, name }) =>
      answers === 0
        ? `There is no TXT record at _acme-challenge.${name}.`
        : hasBlanks
        ? `A TXT record at _acme-challenge.${name} has blanks or quotation marks around the expected value.`
        : compared < answers
        ? `Of ${answers} TXT records at _acme-challenge.${name} the first ${compared} were compared, and none has the expected value.`
        : `Of ${answers} TXT records at _acme-challenge.${name} none has the expected value.`,
    more: aboutName
  },
  HandshakeFailed: {
    type: "tls",
    status: 400,
    detail: ({ name, port }) =>
      `The host of ${name} did not speak the validation protocol at port ${port}; ${logHasReason}`,
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
  AuthorizationDeactivated: {
    type: "unauthorized",
    status: 403,
    detail: ({ name }) =>
      `The authorization of ${name} was deactivated, so this order cannot become ready any more; place a new one.`,
    more: aboutName
  },
  AuthorityWithdrawn: {
    type: "unauthorized",
    status: 403,
    detail: ({ isCredentialGone }) =>
      isCredentialGone
        ? "Before the certificate was issued, the credential of the account was deleted; create an account with another credential."
        : "Before the certificate was issued, the account was blocked or deactivated, or an authorization was deactivated; place a new order."
  },
  IssuerCompromised: {
    type: "serverInternal",
    status: 500,
    detail: () => "The authority that signed the certificate must not be trusted any more; place a new order later."
  },
  ...upstreamProblems,
  IssuanceAbandoned: { type: "serverInternal", status: 500, detail: () => `Issuance was given up; ${logHasReason}` }
} as const satisfies { readonly [T in AcmeError["_tag"]]: Row<Extract<AcmeError, { readonly _tag: T }>> }

/** Every failure by its tag, with the suffix of its type and its status, for the documents. */
export const problemRows: ReadonlyArray<{ readonly tag: AcmeError["_tag"] } & Pick<Row<never>, "type" | "status">> =
  Object.entries<Pick<Row<never>, "type" | "status">>(table).map(([tag, { status, type }]) => ({
    tag: tag as AcmeError["_tag"],
    status,
    ...(type === undefined ? {} : { type })
  }))

/** The suffixes of the problem types that the failures `E` can have. */
export type ProblemTypeOf<E extends AcmeError> = (typeof table)[E["_tag"]] extends { readonly type: infer T } ? T
  : never

const rowOf = <E extends AcmeError>(error: E): Row<E> => table[error._tag] as Row<E>

/** Returns a failure as a problem document, for an answer or for a stored error. */
export const problemOf = (error: AcmeError): ProblemDocument => {
  const row = rowOf(error)
  return {
    ...(row.type === undefined ? {} : { type: `${acmeError}${row.type}` }),
    status: row.status,
    detail: row.detail(error),
    ...row.more?.(error)
  }
}

/** Returns the suffix of the problem type, for logs and metrics. If the failure has no type, returns `none`. */
export const problemType = (error: AcmeError): string => rowOf(error).type ?? "none"

/** Returns the number of seconds for the Retry-After header, if the failure has such a number. */
export const retryAfter = (error: AcmeError): number | undefined => rowOf(error).retryAfter?.(error)

/** Returns whether a value is one of the failures above. */
export const isAcmeError = (error: unknown): error is AcmeError =>
  typeof error === "object" && error !== null && "_tag" in error && typeof error._tag === "string" &&
  Object.hasOwn(table, error._tag)
