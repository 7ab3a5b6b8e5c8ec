import type { AcmeError, ChallengeFailed } from "./AcmeError.ts"
import type { IssueFailureCause } from "./Audit.ts"
import type { OperatorError } from "./OperatorError.ts"
import type { ValidationReason } from "./ValidationCause.ts"
import type { EventName } from "./words/Log.ts"

/*
 * Describes how the log records each failure that a client or an operator receives. If several causes have the same
 * sentence, the record names the cause (docs/reference/errors.md, "Causes").
 */

/** A cause of a failure, and the log record that distinguishes it from other causes. */
export interface CauseRecord {
  /** The cause in words for operators. Absent if the client's sentence already states the cause. */
  readonly cause?: string
  readonly event: EventName
  /** The part of the record that shows the cause: `reason=expired`, or the name of a field with a text. */
  readonly by?: string
}

type ChallengeTag = ChallengeFailed["_tag"]

/** For each reason of a failed validation, the failures that a client may receive. */
const failuresOf: { readonly [R in ValidationReason]: ReadonlyArray<ChallengeTag> } = {
  resolve_failed: ["ChallengeUnreachable", "TxtLookupFailed"],
  no_address: ["ChallengeUnreachable"],
  address_denied: ["ChallengeUnreachable"],
  connect_failed: ["ChallengeUnreachable"],
  tls_failed: ["ChallengeUnreachable"],
  exchange_failed: ["ChallengeUnreachable"],
  redirect_refused: ["ChallengeUnreachable"],
  redirect_loop: ["ChallengeUnreachable"],
  redirect_limit: ["ChallengeUnreachable"],
  timeout: ["ChallengeUnreachable", "TxtLookupFailed"],
  status: ["ChallengeMismatched"],
  body_too_large: ["ChallengeMismatched"],
  body_mismatch: ["ChallengeMismatched"],
  txt_absent: ["TxtMismatched"],
  txt_blanks: ["TxtMismatched"],
  txt_mismatch: ["TxtMismatched"],
  handshake_failed: ["HandshakeFailed"],
  alpn_refused: ["HandshakeFailed"],
  certificate_absent: ["AlpnCertificateMismatched"],
  certificate_undecodable: ["AlpnCertificateMismatched"],
  not_self_signed: ["AlpnCertificateMismatched"],
  san_absent: ["AlpnCertificateMismatched"],
  san_mismatch: ["AlpnCertificateMismatched"],
  extension_absent: ["AlpnCertificateMismatched"],
  extension_repeated: ["AlpnCertificateMismatched"],
  extension_not_critical: ["AlpnCertificateMismatched"],
  extension_undecodable: ["AlpnCertificateMismatched"],
  extension_length: ["AlpnCertificateMismatched"],
  extension_mismatch: ["AlpnCertificateMismatched"],
  given_up: ["ValidationAbandoned"]
}

const recordOf = (reason: string): CauseRecord => {
  switch (reason) {
    case "timeout":
      return { cause: reason, event: "challenge_validation_timeout", by: "error" }
    case "given_up":
      return { cause: reason, event: "challenge_validation_abandoned", by: "error" }
    default:
      return { cause: reason, event: "challenge_validation_failed", by: `reason=${reason}` }
  }
}

/**
 * Returns the causes of a failure that a client receives: one for each validation reason that results in the failure.
 */
const validation = (tag: ChallengeTag): ReadonlyArray<CauseRecord> =>
  Object.entries(failuresOf).flatMap(([reason, tags]) => tags.includes(tag) ? [recordOf(reason)] : [])

const byPolicy: ReadonlyArray<CauseRecord> = [{ event: "filter_denied", by: "check, detail" }]
const byUpstream: ReadonlyArray<CauseRecord> = [{ event: "upstream_relay_failed", by: "error" }]

const abandoned = (...causes: ReadonlyArray<IssueFailureCause>): ReadonlyArray<CauseRecord> =>
  causes.map((cause) => ({ cause, event: "order_finalize_abandoned", by: "error" }))

type Tag = AcmeError["_tag"]

/** Returns the word for a tag. For `NotFound` this is `not_found`. */
const wordOf = (tag: string): string => tag.replace(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase()

/** Returns the word for a failure in `request_refused`. */
export const refusalWord = ({ _tag }: Pick<AcmeError, "_tag">): string => wordOf(_tag)

/** The refusals that have a record of their own in addition to `request_refused`. */
const alsoTold: { readonly [T in Tag]?: ReadonlyArray<CauseRecord> } = {
  AccountBlocked: [{ event: "account_request_refused", by: "reason=blocked" }],
  ClientRefused: [{ event: "filter_request_blocked", by: "check, detail" }],
  RejectedIdentifier: byPolicy,
  OrderRefused: byPolicy,
  RateLimited: [{ event: "request_rate_limited", by: "limit" }],
  TooManyValidations: [{ event: "challenge_trigger_rate_limited", by: "in_flight" }],
  UpstreamRefusedReason: [{ event: "certificate_revoke_abandoned", by: "error" }]
}

/**
 * The failures that are not recorded as `request_refused`: faults of the service, failures that are stored with an
 * order or a challenge, and stale nonces.
 */
const onlyTold: { readonly [T in Tag]?: ReadonlyArray<CauseRecord> } = {
  BadNonce: [
    { cause: "the request has no nonce", event: "nonce_rejected", by: "reason=missing" },
    { cause: "the service did not make the nonce", event: "nonce_rejected", by: "reason=unknown" },
    { cause: "the nonce is older than `nonce.ttl_seconds`", event: "nonce_rejected", by: "reason=expired" },
    { cause: "the nonce was used before, or was swept", event: "nonce_replayed" }
  ],
  ServerInternal: [
    { cause: "the database failed", event: "db_statement_failed", by: "statement, error" },
    { cause: "a row cannot be read, such as a stored chain", event: "db_row_unreadable", by: "statement, row, error" },
    { cause: "a rule of a policy could not be decided", event: "filter_undecided", by: "rule, check, error" },
    { cause: "no list names the certificates of this issuer", event: "local_ca_issuer_mismatch", by: "issuer" },
    { cause: "the record of a revocation list is faulty", event: "local_ca_crl_initialization_failed", by: "error" }
  ],
  HandlerPanicked: [{ event: "request_handler_panicked", by: "error" }],
  Shed: [{ event: "request_shed" }],
  DeadlineExceeded: [{ event: "request_deadline_exceeded" }],
  ChallengeEnqueueFailed: [{ event: "challenge_validation_enqueue_failed", by: "error" }],
  RevocationPending: [
    { cause: "no worker has begun the job yet", event: "certificate_revoke_queued", by: "order_id" },
    { cause: "the signer failed, and the job is tried again", event: "certificate_revoke_signer_failed", by: "error" }
  ],
  RevocationAbandoned: [{ event: "certificate_revoke_abandoned", by: "error" }],
  RevocationStopped: [{ event: "certificate_revoke_rejected", by: "reason" }],
  CrlNotReady: [
    { cause: "no worker serves the profile", event: "server_role_no_worker" },
    { cause: "the first list cannot be made", event: "local_ca_crl_initialization_failed", by: "error" }
  ],
  ProfileDegraded: [{ event: "profile_degraded", by: "error" }],
  ChallengeUnreachable: validation("ChallengeUnreachable"),
  ChallengeMismatched: validation("ChallengeMismatched"),
  TxtLookupFailed: validation("TxtLookupFailed"),
  TxtMismatched: validation("TxtMismatched"),
  HandshakeFailed: validation("HandshakeFailed"),
  AlpnCertificateMismatched: validation("AlpnCertificateMismatched"),
  ValidationAbandoned: validation("ValidationAbandoned"),
  AuthorizationDeactivated: [{ event: "authz_deactivated", by: "authz_id, order_id" }],
  IssuerCompromised: [{ event: "order_finalize_issuer_compromised", by: "order_id" }],
  AuthorityWithdrawn: [{ event: "order_finalize_authority_withdrawn", by: "order_id" }],
  UpstreamRefusedOrder: byUpstream,
  UpstreamRateLimited: byUpstream,
  UpstreamTooSlow: byUpstream,
  UpstreamRefusedName: byUpstream,
  UpstreamUnsupportedName: byUpstream,
  UpstreamMalformedOrder: byUpstream,
  UpstreamRefusedNames: byUpstream,
  UpstreamForbiddenByCaa: byUpstream,
  UpstreamRefusedKey: byUpstream,
  IssuanceAbandoned: abandoned(
    "attempts_exhausted",
    "order_expired",
    "cancelled",
    "chain_rejected",
    "lint_failed",
    "script_failed"
  )
}

/** Returns what the log records about a failure with this tag: one entry for each cause. */
export const recordsOf = (tag: Tag): ReadonlyArray<CauseRecord> =>
  onlyTold[tag] ?? [...alsoTold[tag] ?? [], { event: "request_refused", by: `reason=${wordOf(tag)}` }]

/** Returns whether a request that ends with this failure is recorded as `request_refused`. */
export const isRefusalTold = ({ _tag }: Pick<AcmeError, "_tag">): boolean => onlyTold[_tag] === undefined

/**
 * The refusals of operators that are recorded, by their tags. Every other refusal tells the signed-in operator the
 * whole cause, and changes nothing.
 */
export const operatorRecords: { readonly [T in OperatorError["_tag"]]?: ReadonlyArray<CauseRecord> } = {
  InvalidCredentials: [
    { cause: "there is no such operator", event: "admin_login_failed", by: "reason=unknown_user" },
    { cause: "the password is wrong", event: "admin_login_failed", by: "reason=wrong_password" },
    { cause: "the operator is disabled", event: "admin_login_failed", by: "reason=account_disabled" },
    { cause: "the code is wrong, or is not a code", event: "admin_mfa_failed", by: "reason=wrong_code" },
    { cause: "the code was used before", event: "admin_mfa_failed", by: "reason=replayed" },
    { cause: "the session has no attempts left for a code", event: "admin_mfa_failed", by: "reason=attempts_exhausted" }
  ],
  InvalidCode: [{ event: "admin_mfa_failed", by: "reason" }],
  SessionInvalid: [
    { cause: "there is no session", event: "admin_request_refused", by: "reason=session_state" },
    { cause: "the text is not a token of this service", event: "admin_token_refused", by: "reason=malformed" },
    { cause: "there is no such token", event: "admin_token_refused", by: "reason=unknown" },
    { cause: "the token was revoked", event: "admin_token_refused", by: "reason=revoked" },
    { cause: "the token has expired", event: "admin_token_refused", by: "reason=expired" },
    { cause: "the owner of the token is disabled", event: "admin_token_refused", by: "reason=owner_disabled" },
    { cause: "the token is not for this address", event: "admin_token_refused", by: "reason=address" }
  ],
  SessionExpired: [{ event: "admin_request_refused", by: "reason=session_state" }],
  SessionIdle: [{ event: "admin_request_refused", by: "reason=session_state" }],
  MfaPending: [{ event: "admin_request_refused", by: "reason=session_state" }],
  CsrfFailed: [{ event: "admin_request_refused", by: "reason=csrf" }],
  ForeignOrigin: [{ event: "admin_request_refused", by: "reason=origin, origin, sent_origin" }],
  InsufficientRole: [{ event: "admin_request_refused", by: "reason=role" }],
  AccessDenied: [{ event: "filter_request_blocked", by: "check, detail" }],
  StepUpFailed: [{ event: "admin_step_up_failed" }],
  LiveCertificates: [{ event: "admin_delete_refused", by: "reason" }],
  RateLimited: [
    { cause: "too many sign-ins from the address failed", event: "admin_login_failed", by: "reason=rate_limited" },
    {
      cause: "too many passwords for the operator were wrong",
      event: "admin_login_failed",
      by: "reason=operator_rate_limited"
    },
    { cause: "too many codes were wrong", event: "admin_mfa_failed", by: "reason=rate_limited" }
  ],
  Internal: [
    { cause: "the database failed", event: "db_statement_failed", by: "statement, error" },
    { cause: "the service has a defect", event: "request_handler_panicked", by: "error" }
  ],
  Busy: [
    { cause: "the database did not answer in time", event: "db_statement_failed", by: "statement, error" },
    { cause: "no connection became free in time", event: "db_pool_timeout", by: "waited_ms" }
  ],
  SignerRefused: [{ event: "certificate_revoke_signer_failed", by: "error" }]
}
