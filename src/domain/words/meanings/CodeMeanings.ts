import type { OperatorCode } from "../../OperatorProblem.ts"
import type { Meaning } from "./Meaning.ts"

/**
 * What the error codes of the API mean, and what the sender of the request does. If a code has no text, this does not
 * compile.
 */
export const codeMeanings: { readonly [C in OperatorCode]: Meaning } = {
  bad_request: [
    "A member of the request is missing, unknown or has a wrong value.",
    "Correct the member that the message names; the document lists the members of each route.",
    "reference/api-reference.md"
  ],
  invalid_status: [
    "A filter has a value that it does not know.",
    "Use one of the values that the message lists.",
    "reference/api-reference.md"
  ],
  conflicting_identifier_filter: [
    "Two filters for names exclude each other.",
    "Give only one of identifier, identifierSuffix and identifierContains.",
    "reference/api-reference.md"
  ],
  weak_password: [
    "The new password is too short, or easy to guess.",
    "Choose another password; the message says what is wrong.",
    "operate/operators.md"
  ],
  export_too_large: [
    "More rows match than an export over the API can contain.",
    "Use narrower filters, or run `acme-svc order export` or `acme-svc audit export`, which have no limit.",
    "reference/api.md"
  ],
  invalid_credentials: [
    "The name, the password or the code is wrong, or the operator is disabled; the answer does not say which.",
    "Find `admin_login_failed` or `admin_mfa_failed` in the log, which have the reason.",
    "operate/operators.md"
  ],
  session_invalid: [
    "There is no such session or token, or it was ended.",
    "Sign in again, or use another token; `admin_token_refused` in the log has the reason.",
    "reference/api.md"
  ],
  session_expired: [
    "The session is older than `admin.session_ttl_seconds`.",
    "Sign in again.",
    "operate/operators.md"
  ],
  session_idle: [
    "The session was not used for `admin.session_idle_timeout_seconds`.",
    "Sign in again.",
    "operate/operators.md"
  ],
  mfa_pending: [
    "The password was right, but the second factor is still missing.",
    "Send the code of the authenticator, or a recovery code.",
    "operate/operators.md"
  ],
  invalid_code: [
    "The code is not the one that the new authenticator shows.",
    "Check the clock of the device, and enter the next code.",
    "operate/runbooks/second-factor-lost.md"
  ],
  csrf_failed: [
    "The request does not come from a page of the panel, or the panel was opened at another URL than its own.",
    "Open the panel at the URL of `admin.base_url`, and load the page again.",
    "operate/operators.md"
  ],
  insufficient_role: [
    "The role of the operator, or of the token, does not permit this.",
    "Ask an admin for the role: `acme-svc admin user role NAME ROLE`.",
    "reference/api-roles.md"
  ],
  access_denied: [
    "The policy of the listener for operators refuses the address or the request.",
    "To admit the address, change the rule of `admin.filter.rules` that the record `filter_request_blocked` names.",
    "configure/policy.md"
  ],
  step_up_failed: [
    "The act asks for the password of the signed-in operator, but the password was wrong.",
    "Send your own password, not that of another operator.",
    "operate/operators.md"
  ],
  not_found: [
    "There is no such record, or there is nothing at this path.",
    "Check the id; the record may have been deleted, or may belong to another installation.",
    "reference/api-reference.md"
  ],
  method_not_allowed: [
    "The path does not accept this method.",
    "Use one of the methods in the header `Allow`.",
    "reference/api-reference.md"
  ],
  body_too_large: [
    "The body is larger than `admin.max_body_bytes`.",
    "Send less at once, or raise the key.",
    "reference/configuration.md"
  ],
  unsupported_media_type: [
    "The body is not JSON, or is compressed.",
    "Send it with `Content-Type: application/json`, without compression.",
    "reference/api.md"
  ],
  live_certificates: [
    "The record has certificates that can still be used, so the record cannot be deleted.",
    "Revoke them first with `acme-svc order revoke ORDER_ID`, or deactivate the account instead.",
    "operate/operators.md"
  ],
  profile_not_mounted: [
    "The profile of the certificate is not served, so nothing can revoke the certificate.",
    "Write the profile into the configuration again, and reload.",
    "configure/profiles.md"
  ],
  order_not_issued: [
    "The order has no certificate.",
    "Look at its status with `acme-svc order show ORDER_ID`."
  ],
  already_revoked: ["The certificate is revoked already.", "Do nothing."],
  job_not_cancellable: [
    "A worker has the job now, or the job has ended.",
    "Wait for the end of the attempt; `acme-svc jobs show JOB_ID` shows its status.",
    "operate/jobs.md"
  ],
  job_not_runnable: [
    "The job is running, has succeeded, was cancelled, or was replaced by another job.",
    "Look at its status with `acme-svc jobs show JOB_ID`.",
    "operate/jobs.md"
  ],
  account_state: [
    "The account is in a state in which this cannot be done.",
    "Look at it with `acme-svc account show ID`.",
    "configure/policy.md"
  ],
  campaign_state: [
    "The campaign is in a state in which this cannot be done.",
    "Look at its state with `acme-svc campaign show ID`.",
    "configure/campaigns.md"
  ],
  too_many_campaigns: [
    "The limit of open campaigns is reached.",
    "End one of them with `acme-svc campaign end ID`.",
    "configure/campaigns.md"
  ],
  last_admin: [
    "The operator is the last active admin, and without an admin nobody could manage operators.",
    "Create another admin first: `acme-svc admin user create NAME --role admin`.",
    "operate/operators.md"
  ],
  self_target: [
    "Operators cannot do this to their own account.",
    "Ask another admin, or use the command line.",
    "operate/operators.md"
  ],
  mfa_required: [
    "`admin.require_mfa` is on, so nobody can turn the second factor off.",
    "Set up another device instead; after a loss run `acme-svc admin user totp reset NAME`.",
    "operate/runbooks/second-factor-lost.md"
  ],
  mfa_not_enrolled: [
    "The operator has no second factor.",
    "Check this with `acme-svc admin user totp status NAME`, and let the operator set up a second factor.",
    "operate/operators.md"
  ],
  mfa_not_pending: [
    "A code was sent to finish the set-up of a second factor, but no set-up has begun.",
    "Begin the set-up again, and send the code of the new authenticator.",
    "operate/operators.md"
  ],
  name_taken: ["Another record has this name already.", "Choose another name."],
  number_not_above: [
    "The number of a revocation list can only rise, but the given number is not above the stored one.",
    "Give a higher number; `acme-svc crl list` shows the present one.",
    "operate/backup-and-restore.md"
  ],
  issuer_unknown: [
    "The CA of the certificate has no revocation list here, so no list would contain the revocation.",
    "Start a worker that serves a profile with this CA; if one runs, look for `local_ca_crl_initialization_failed` in its log.",
    "operate/revocation.md"
  ],
  issuer_stopped: [
    "No worker can sign the list of the CA, so the certificate cannot be revoked now.",
    "Remove the cause that the message names; `acme-svc crl list` shows the lists.",
    "operate/runbooks/revocation-list-due.md"
  ],
  rate_limited: [
    "There were too many wrong passwords or codes.",
    "Wait for the time of `Retry-After`; `admin.login_max_attempts` and `admin.login_window_seconds` set the limit.",
    "operate/operators.md"
  ],
  internal: [
    "The service has failed.",
    "Find the records in the log that have the `request_id` of the answer.",
    "operate/runbooks/server-errors.md"
  ],
  signer_failed: [
    "The program or the upstream that signs did not do what was asked.",
    "Remove the cause that the message names.",
    "operate/runbooks/issuance-fails.md"
  ],
  busy: [
    "The service, or its database, has too much to do now.",
    "Send the request again later; if this lasts, look for `db_pool_timeout` and `db_statement_failed` in the log.",
    "operate/runbooks/overload.md"
  ]
}
