import * as Data from "effect/Data"

/*
 * The refusals for operators. They are the same in the API, in the panel and on the command line. `OperatorProblem.ts`
 * has one row for each refusal, with its code, its status and its sentence (docs/contribute/decisions/admin.md,
 * "Errors").
 */

/** The records that operators name by an id. */
export type Noun =
  | "account"
  | "order"
  | "certificate"
  | "certificate of order"
  | "job"
  | "credential"
  | "audit row"
  | "link of the audit chain"
  | "upstream order"
  | "operator"
  | "session"
  | "token"
  | "profile"
  | "issuer"
  | "campaign"

// 400

/**
 * A member, a parameter or the body cannot be used. `detail` names the refused part, and says what is accepted there.
 * If there is a `member`, the sentence begins with that name, and `detail` is the rest of the sentence.
 */
export class BadRequest extends Data.TaggedError("BadRequest")<{
  readonly detail: string
  readonly member?: string
}> {}

/** A word is not in its closed set, such as the set of statuses or events. */
export class UnknownWord extends Data.TaggedError("UnknownWord")<{
  readonly name: string
  readonly word: string
  readonly known: ReadonlyArray<string>
}> {}

/** The request contains more than one filter for names. */
export class ConflictingIdentifierFilter extends Data.TaggedError("ConflictingIdentifierFilter") {}

/** A new password is refused. `why` is the end of a sentence that begins with "The password". */
export class WeakPassword extends Data.TaggedError("WeakPassword")<{ readonly why: string }> {}

/** An operator who enrols an authenticator gave a wrong code. */
export class InvalidCode extends Data.TaggedError("InvalidCode") {}

/** More rows match than one export may contain. */
export class ExportTooLarge extends Data.TaggedError("ExportTooLarge")<{
  readonly rows: number
  readonly most: number
}> {}

// 401

/** A sign-in failed because of the name, the password or the code of the second step. */
export class InvalidCredentials extends Data.TaggedError("InvalidCredentials") {}

/** There is no session or no such token, or the operator who owns it is disabled or does not exist any more. */
export class SessionInvalid extends Data.TaggedError("SessionInvalid") {}

/** The session reached the end of its lifetime. */
export class SessionExpired extends Data.TaggedError("SessionExpired") {}

/** The session was not used for too long. */
export class SessionIdle extends Data.TaggedError("SessionIdle") {}

/** The session still lacks its second factor. */
export class MfaPending extends Data.TaggedError("MfaPending") {}

// 403

/** A changing request lacks the CSRF token of its session. */
export class CsrfFailed extends Data.TaggedError("CsrfFailed") {}

/** A request does not come from the origin of `admin.base_url`. */
export class ForeignOrigin extends Data.TaggedError("ForeignOrigin")<{
  /** The origin that the browser names. Undefined if the browser names no origin or several. */
  readonly from: string | undefined
  /** The URL of the panel. */
  readonly panel: string
}> {}

/** The role of the operator or of the token does not permit the request. */
export class InsufficientRole extends Data.TaggedError("InsufficientRole") {}

/** `admin.filter` refused the request. */
export class AccessDenied extends Data.TaggedError("AccessDenied")<{ readonly detail?: string | undefined }> {}

/** The request requires the caller's own password, but the given password is wrong. */
export class StepUpFailed extends Data.TaggedError("StepUpFailed") {}

// 404, 405, 413, 415

/** No record of this kind has the id. `hint` is a sentence that says what the id may be instead. */
export class NoSuch extends Data.TaggedError("NoSuch")<{
  readonly noun: Noun
  readonly id: string
  readonly hint?: string | undefined
}> {}

/** No route has exactly this path. */
export class NoSuchRoute extends Data.TaggedError("NoSuchRoute") {}

/** The route has no such method. */
export class MethodRefused extends Data.TaggedError("MethodRefused")<{ readonly allow: ReadonlyArray<string> }> {}

/** The body has more octets than `admin.max_body_bytes`. */
export class BodyRefused extends Data.TaggedError("BodyRefused")<{ readonly maxBytes: number }> {}

/** The body is not `application/json`. */
export class MediaTypeRefused extends Data.TaggedError("MediaTypeRefused") {}

// 409

/** The record to be deleted has certificates that are neither revoked nor expired. */
export class LiveCertificates extends Data.TaggedError("LiveCertificates")<{
  readonly noun: "order" | "account" | "credential"
  readonly id: string
  readonly count: number
}> {}

/** The profile is not served, so none of its certificates can be revoked. */
export class ProfileNotMounted extends Data.TaggedError("ProfileNotMounted")<{ readonly profile: string }> {}

/** The order has no certificate. */
export class OrderNotIssued extends Data.TaggedError("OrderNotIssued")<{ readonly id: string }> {}

/** The certificate is revoked already. */
export class AlreadyRevoked extends Data.TaggedError("AlreadyRevoked") {}

/** No worker knows the CA that signed the certificate, so no revocation list would contain it. */
export class IssuerUnknown extends Data.TaggedError("IssuerUnknown") {}

/**
 * The CA of the certificate revokes nothing, because no worker can read the record of its lists. `trouble` says why.
 */
export class IssuerStopped extends Data.TaggedError("IssuerStopped")<{ readonly trouble: string }> {}

/** The job is running or has ended. */
export class JobNotCancellable extends Data.TaggedError("JobNotCancellable")<{
  readonly id: string
  readonly status: string
}> {}

/** The job cannot run again, or another job has replaced it. */
export class JobNotRunnable extends Data.TaggedError("JobNotRunnable")<{
  readonly id: string
  readonly status: string
}> {}

/**
 * The account is in a state that does not permit the act. `state` is the end of a sentence about the account, such as
 * "is not blocked".
 */
export class AccountStateRefused extends Data.TaggedError("AccountStateRefused")<{
  readonly id: string
  readonly state: string
}> {}

/** The campaign is in a state that does not permit the act. `act` is the end of a sentence, such as "be paused". */
export class CampaignStateRefused extends Data.TaggedError("CampaignStateRefused")<{
  readonly id: string
  readonly state: string
  readonly act: string
}> {}

/** As many campaigns are open as may be. */
export class TooManyCampaigns extends Data.TaggedError("TooManyCampaigns")<{ readonly most: number }> {}

/** No active operator with the role `admin` would remain. */
export class LastAdmin extends Data.TaggedError("LastAdmin")<{ readonly username: string }> {}

/** Operators may not do this to themselves. */
export class SelfTarget extends Data.TaggedError("SelfTarget") {}

/** The second factor cannot be removed, because `admin.require_mfa` is on. */
export class MfaRequired extends Data.TaggedError("MfaRequired") {}

/** The operator has no second factor. */
export class MfaNotEnrolled extends Data.TaggedError("MfaNotEnrolled") {}

/** No enrolment has begun. */
export class MfaNotPending extends Data.TaggedError("MfaNotPending") {}

/** Another live record of the same owner has this name. */
export class NameTaken extends Data.TaggedError("NameTaken")<{ readonly name: string }> {}

/** The number of a revocation list is not larger than the stored number. */
export class NumberNotAbove extends Data.TaggedError("NumberNotAbove")<{ readonly current: number }> {}

// 429, 500, 502, 503

/**
 * There were too many attempts, or there is too much work at the same time. Another try may succeed after `retryAfter`
 * seconds. `isOwnDoing` means that the client itself causes too much work. `isPassing` means that attempts in progress
 * reached the limit, but may soon no longer count.
 */
export class RateLimited extends Data.TaggedError("RateLimited")<{
  readonly retryAfter: number
  readonly isOwnDoing?: boolean
  readonly isPassing?: boolean
}> {}

/** The request failed for an internal reason. */
export class Internal extends Data.TaggedError("Internal") {}

/** The signer refused or failed. `detail` is its own text. */
export class SignerRefused extends Data.TaggedError("SignerRefused")<{ readonly detail: string }> {}

/** The service cannot answer in time. Another try may succeed after `retryAfter` seconds. */
export class Busy extends Data.TaggedError("Busy")<{ readonly retryAfter: number }> {}

/** Every refusal that an operator can receive. */
export type OperatorError =
  | BadRequest
  | UnknownWord
  | ConflictingIdentifierFilter
  | WeakPassword
  | InvalidCode
  | ExportTooLarge
  | InvalidCredentials
  | SessionInvalid
  | SessionExpired
  | SessionIdle
  | MfaPending
  | CsrfFailed
  | ForeignOrigin
  | InsufficientRole
  | AccessDenied
  | StepUpFailed
  | NoSuch
  | NoSuchRoute
  | MethodRefused
  | BodyRefused
  | MediaTypeRefused
  | LiveCertificates
  | ProfileNotMounted
  | OrderNotIssued
  | AlreadyRevoked
  | IssuerUnknown
  | IssuerStopped
  | JobNotCancellable
  | JobNotRunnable
  | AccountStateRefused
  | CampaignStateRefused
  | TooManyCampaigns
  | LastAdmin
  | SelfTarget
  | MfaRequired
  | MfaNotEnrolled
  | MfaNotPending
  | NameTaken
  | NumberNotAbove
  | RateLimited
  | Internal
  | SignerRefused
  | Busy
