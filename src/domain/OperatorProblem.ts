import type { OperatorError } from "./OperatorError.ts"

/**
 * The codes of the table below. Scripts depend on them, so a released code never changes
 * (docs/contribute/decisions/compatibility.md, "Each surface").
 */
export type OperatorCode =
  | "bad_request"
  | "invalid_status"
  | "conflicting_identifier_filter"
  | "weak_password"
  | "export_too_large"
  | "invalid_credentials"
  | "session_invalid"
  | "session_expired"
  | "session_idle"
  | "mfa_pending"
  | "invalid_code"
  | "csrf_failed"
  | "insufficient_role"
  | "access_denied"
  | "step_up_failed"
  | "not_found"
  | "method_not_allowed"
  | "body_too_large"
  | "unsupported_media_type"
  | "live_certificates"
  | "profile_not_mounted"
  | "order_not_issued"
  | "already_revoked"
  | "job_not_cancellable"
  | "job_not_runnable"
  | "account_state"
  | "campaign_state"
  | "too_many_campaigns"
  | "last_admin"
  | "self_target"
  | "mfa_required"
  | "mfa_not_enrolled"
  | "mfa_not_pending"
  | "name_taken"
  | "number_not_above"
  | "issuer_unknown"
  | "issuer_stopped"
  | "rate_limited"
  | "internal"
  | "signer_failed"
  | "busy"

/** A refusal in the form that is shown: an HTTP status, a code for programs, and a sentence for people. */
export interface OperatorProblem {
  readonly status: number
  readonly code: OperatorCode
  readonly message: string
  /** The number of seconds for `Retry-After`. */
  readonly retryAfter?: number
}

type Tag = OperatorError["_tag"]

interface Row<E> {
  readonly status: number
  readonly code: OperatorCode
  readonly message: string | ((error: E) => string)
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

/**
 * One row for each refusal. If an error has no row, this does not compile (docs/contribute/decisions/admin.md,
 * "Errors").
 */
const table = {
  BadRequest: {
    status: 400,
    code: "bad_request",
    message: ({ detail, member }) => member === undefined ? detail : `${member} ${detail}`
  },
  UnknownWord: {
    status: 400,
    code: "invalid_status",
    message: ({ known, name, word }) => `${name} takes one of ${known.join(", ")}, not ${JSON.stringify(word)}.`
  },
  ConflictingIdentifierFilter: {
    status: 400,
    code: "conflicting_identifier_filter",
    message: "identifier, identifierSuffix and identifierContains exclude each other."
  },
  WeakPassword: { status: 400, code: "weak_password", message: ({ why }) => `The password ${why}.` },
  InvalidCode: { status: 400, code: "invalid_code", message: "This is not the code that the new authenticator shows." },
  ExportTooLarge: {
    status: 400,
    code: "export_too_large",
    message: ({ most, rows }) => `${rows} rows match, but an export holds at most ${most}; narrow the filters.`
  },
  InvalidCredentials: { status: 401, code: "invalid_credentials", message: "The sign-in failed." },
  SessionInvalid: { status: 401, code: "session_invalid", message: "There is no session; sign in." },
  SessionExpired: { status: 401, code: "session_expired", message: "The session has ended; sign in again." },
  SessionIdle: { status: 401, code: "session_idle", message: "The session was idle for too long; sign in again." },
  MfaPending: { status: 401, code: "mfa_pending", message: "The sign-in still needs its second factor." },
  CsrfFailed: {
    status: 403,
    code: "csrf_failed",
    message:
      "The request lacks the X-CSRF-Token of its session. A page that was loaded before the last sign-in has to be loaded again."
  },
  ForeignOrigin: {
    status: 403,
    code: "csrf_failed",
    message: ({ from, panel }) =>
      `This page came from ${from ?? "another site"}; the panel is at ${panel}, as admin.base_url says.`
  },
  InsufficientRole: { status: 403, code: "insufficient_role", message: "Your role does not permit this." },
  AccessDenied: {
    status: 403,
    code: "access_denied",
    message: ({ detail }) => detail ?? "The policy of this listener refuses the request."
  },
  StepUpFailed: { status: 403, code: "step_up_failed", message: "Your password is wrong." },
  NoSuch: {
    status: 404,
    code: "not_found",
    message: ({ hint, id, noun }) => `There is no ${noun} ${id}.${hint === undefined ? "" : ` ${hint}`}`
  },
  NoSuchRoute: { status: 404, code: "not_found", message: "There is nothing at this path." },
  MethodRefused: {
    status: 405,
    code: "method_not_allowed",
    message: ({ allow }) => `This path takes ${allow.join(", ")}.`
  },
  BodyRefused: {
    status: 413,
    code: "body_too_large",
    message: ({ maxBytes }) => `The body is larger than ${maxBytes} octets.`
  },
  MediaTypeRefused: {
    status: 415,
    code: "unsupported_media_type",
    message: "A body needs Content-Type: application/json, and must not be compressed."
  },
  LiveCertificates: {
    status: 409,
    code: "live_certificates",
    message: ({ count, id, noun }) => {
      const held = `${plural(count, "certificate")} that can still be used; revoke ${count === 1 ? "it" : "them"} first`
      switch (noun) {
        case "order":
          return `Order ${id} has ${held}.`
        case "account":
          return `Account ${id} has ${held}, or deactivate the account, whose certificates stay.`
        case "credential":
          return `The accounts of credential ${id} have ${held}, or keep the accounts, or deactivate them (--deactivate-accounts, accounts=deactivate).`
      }
    }
  },
  ProfileNotMounted: {
    status: 409,
    code: "profile_not_mounted",
    message: ({ profile }) =>
      `Profile ${profile} is not in the configuration, or not enabled, so none of its certificates can be revoked.`
  },
  OrderNotIssued: { status: 409, code: "order_not_issued", message: ({ id }) => `Order ${id} has no certificate.` },
  AlreadyRevoked: { status: 409, code: "already_revoked", message: "The certificate is revoked already." },
  IssuerUnknown: {
    status: 409,
    code: "issuer_unknown",
    message:
      "The CA that signed this certificate has no revocation list yet, so none would name it. Either no worker serves a profile with that CA, or its first list cannot be made; then local_ca_crl_initialization_failed in the log of a worker says why."
  },
  IssuerStopped: { status: 409, code: "issuer_stopped", message: ({ trouble }) => trouble },
  JobNotCancellable: {
    status: 409,
    code: "job_not_cancellable",
    message: ({ id, status }) => `Job ${id} is ${status}; only a job that is ready or failed can be cancelled.`
  },
  JobNotRunnable: {
    status: 409,
    code: "job_not_runnable",
    message: ({ id, status }) =>
      `Job ${id} is ${status} and cannot run now; only a job that is ready, or that failed and was not replaced, can run.`
  },
  AccountStateRefused: {
    status: 409,
    code: "account_state",
    message: ({ id, state }) => `Account ${id} ${state}.`
  },
  CampaignStateRefused: {
    status: 409,
    code: "campaign_state",
    message: ({ act, id, state }) => `Campaign ${id} is ${state}, so it cannot ${act}.`
  },
  TooManyCampaigns: {
    status: 409,
    code: "too_many_campaigns",
    message: ({ most }) => `${most} campaigns are open already; end one of them first.`
  },
  LastAdmin: {
    status: 409,
    code: "last_admin",
    message: ({ username }) => `${username} is the last active admin; create another one first.`
  },
  SelfTarget: { status: 409, code: "self_target", message: "Operators may not do this to themselves." },
  MfaRequired: {
    status: 409,
    code: "mfa_required",
    message: "admin.require_mfa is on, so the second factor cannot be turned off."
  },
  MfaNotEnrolled: { status: 409, code: "mfa_not_enrolled", message: "The operator has no second factor." },
  MfaNotPending: { status: 409, code: "mfa_not_pending", message: "No enrolment has begun." },
  NameTaken: { status: 409, code: "name_taken", message: ({ name }) => `The name ${name} is in use.` },
  NumberNotAbove: {
    status: 409,
    code: "number_not_above",
    message: ({ current }) => `The number is not above the stored one, ${current}.`
  },
  RateLimited: {
    status: 429,
    code: "rate_limited",
    message: ({ retryAfter }) => `Too many attempts; try again in ${plural(retryAfter, "second")}.`
  },
  Internal: { status: 500, code: "internal", message: "The request failed; the log says why." },
  SignerRefused: { status: 502, code: "signer_failed", message: ({ detail }) => detail },
  Busy: { status: 503, code: "busy", message: "The service cannot answer now; try again." }
} satisfies { readonly [T in Tag]: Row<Extract<OperatorError, { readonly _tag: T }>> }

/** The refusals with one of these codes. */
export type RefusalWith<C extends OperatorCode> = Extract<
  OperatorError,
  { readonly _tag: { [T in Tag]: (typeof table)[T]["code"] extends C ? T : never }[Tag] }
>

/** The codes that every route may send. */
export const usualCodes = [
  "bad_request",
  "invalid_status",
  "session_invalid",
  "session_expired",
  "session_idle",
  "mfa_pending",
  "csrf_failed",
  "insufficient_role",
  "access_denied",
  "not_found",
  "method_not_allowed",
  "body_too_large",
  "unsupported_media_type",
  "rate_limited",
  "internal",
  "busy"
] as const satisfies ReadonlyArray<OperatorCode>

/** One of {@link usualCodes}. */
export type UsualCode = (typeof usualCodes)[number]

/** Returns the problem of a refusal. */
export const operatorProblemOf = (error: OperatorError): OperatorProblem => {
  const { code, message, status } = table[error._tag] as Row<OperatorError>
  return {
    status,
    code,
    message: typeof message === "string" ? message : message(error),
    ...("retryAfter" in error ? { retryAfter: error.retryAfter } : {})
  }
}

/** Returns whether a failure is a refusal for operators. */
export const isOperatorError = (error: { readonly _tag: string }): error is OperatorError =>
  Object.hasOwn(table, error._tag)

/** All codes with their statuses and the tags of their refusals, for the documents. */
export const operatorCodes: ReadonlyArray<Pick<OperatorProblem, "code" | "status"> & { readonly tag: Tag }> = Object
  .entries(table).map(([tag, { code, status }]) => ({ tag: tag as Tag, code, status }))
