import { engineSeries } from "../../engine/telemetry/EngineSeries.ts"
import type { NameOf } from "../../engine/telemetry/Metrics.ts"
import { counter, gauge, histogram, makeCounting } from "../../engine/telemetry/Metrics.ts"
import type { LimitName } from "../Limit.ts"
import { limitedThings } from "../Limit.ts"
import { receiverNames } from "../ReceiverName.ts"

/*
 * The series that the service counts, or samples at a scrape (docs/reference/metrics.md, "Series"). Each series is
 * declared in one line, from which the types of the counting code follow.
 */

/**
 * Why a signer gave no certificate. Most words are causes of a job's failure. `script_timeout` means that a program was
 * killed at its timeout. `upstream_unavailable` means that an upstream gave no answer, or an answer that cannot be
 * understood.
 */
const signerCauses = [
  "script_failed",
  "script_timeout",
  "upstream_refused",
  "upstream_unavailable",
  "poll_timeout",
  "lint_failed",
  "chain_rejected",
  "signer_failed"
] as const

/** The results of a sign-in attempt. `limited` means that there were too many attempts, so nothing was compared. */
const signInOutcomes = ["signed_in", "password_refused", "second_factor_refused", "limited"] as const

/** The results of a request to the upstream of a relay. */
const upstreamResults = ["ok", "refused", "bad_nonce", "limited", "failed", "unanswered", "unreachable"] as const
export type UpstreamResult = (typeof upstreamResults)[number]

const requestBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
const upstreamBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const issueBuckets = [1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600]

/** Every series of the service. */
export const series = {
  ...engineSeries,

  // requests, by mounted profile or `none`, and by matched pattern or `<unmatched>`
  acme_svc_requests_total: counter("Requests answered.", { profile: "text", route: "text", status: "text" }),
  acme_svc_request_duration_seconds: histogram(
    "From the parsed request head to the answer handed to the socket.",
    { profile: "text", route: "text" },
    requestBuckets
  ),
  acme_svc_rate_limited_total: counter("Requests refused for a limit of the configuration.", {
    profile: "text",
    limit: Object.keys(limitedThings) as ReadonlyArray<LimitName>
  }),
  acme_svc_sign_ins_total: counter("Attempts of operators to sign in.", { outcome: signInOutcomes }),

  acme_svc_database_changes_lost_total: counter(
    "Changes that the process had committed and that the database lacked later.",
    {}
  ),

  acme_svc_audit_chain_faults_total: counter("Faults that a check of the audit chain has found.", {
    kind: ["changed", "removed", "inserted", "reordered"]
  }),

  // issuance; `reason` is a problem type, as in the audit trail
  acme_svc_certificates_issued_total: counter("Certificates issued.", { profile: "text" }),
  acme_svc_certificate_issue_failures_total: counter("Issuances refused or failed.", {
    profile: "text",
    reason: "text"
  }),
  acme_svc_certificate_issue_duration_seconds: histogram(
    "From the accepted finalize to the stored certificate, in whole seconds.",
    { profile: "text" },
    issueBuckets
  ),
  acme_svc_signer_failures_total: counter("Attempts to sign that ended without a certificate.", {
    profile: "text",
    cause: signerCauses
  }),
  acme_svc_orphaned_certificates_total: counter(
    "Certificates whose orders ended without them: found, and what became of them.",
    { profile: "text", state: ["found", "revoked", "kept", "stored", "expired"] }
  ),
  acme_svc_upstream_requests_total: counter("Requests to the upstreams of relays.", {
    profile: "text",
    operation: "text",
    result: upstreamResults
  }),
  acme_svc_upstream_request_duration_seconds: histogram(
    "From a request to an upstream until its answer, or until the service gave up.",
    { profile: "text", operation: "text" },
    upstreamBuckets
  ),

  // notifications
  acme_svc_notify_deliveries_total: counter("Attempts to deliver a notification.", {
    profile: "text",
    backend: "text",
    outcome: ["delivered", "retried", "failed"]
  }),
  acme_svc_notify_expiry_digests_total: counter("Digests of certificates that expire soon.", {
    profile: "text",
    outcome: ["queued", "skipped", "failed"]
  }),
  acme_svc_notify_expiry_reminders_total: counter("Mails to contacts about certificates that expire soon.", {
    profile: "text",
    outcome: ["queued", "limited", "dropped"]
  }),

  // sampled at a scrape
  acme_svc_jobs: gauge("Rows of the queue.", { kind: "text", status: "text" }),
  acme_svc_jobs_retried: gauge("Waiting rows of the queue that were begun before.", { kind: "text" }),
  acme_svc_job_oldest_ready_seconds: gauge("Age of the oldest row that is due and has not begun.", { kind: "text" }),
  acme_svc_job_oldest_running_seconds: gauge("How long the oldest attempt that is under way has been running.", {
    kind: "text"
  }),
  acme_svc_certificates_expiring: gauge("Unrevoked certificates without a successor that expire within the window.", {
    profile: "text",
    window: "text"
  }),
  acme_svc_notify_oldest_undelivered_seconds: gauge(
    "Age of the oldest notification that is not delivered; 0 if all are delivered.",
    {}
  ),
  acme_svc_profile_degraded: gauge("1 while no worker can sign for the profile, else 0.", { profile: "text" }),
  acme_svc_crl_next_update_seconds: gauge(
    "Seconds until the stored revocation list expires; negative after that.",
    { issuer: "text" }
  ),
  acme_svc_certificates_revoked_last_hour: gauge("Certificates revoked within the last hour.", {
    profile: "text",
    reason: "text"
  }),
  acme_svc_campaign_certificates: gauge("Certificates of the campaigns that are running.", {
    campaign: "text",
    state: ["matched", "asked", "replaced", "never_asks", "remaining"]
  }),
  acme_svc_audit_last_row: gauge(
    "Number of the newest row of the audit trail. It falls when the database goes back to an older state.",
    {}
  ),
  acme_svc_audit_unchained_seconds: gauge(
    "Age of the oldest row of the audit trail that is not chained yet; 0 if all are chained.",
    {}
  ),
  acme_svc_audit_chain_checked_seconds: gauge(
    "Time since the last whole check of the audit chain, or since the beginning of the first one.",
    {}
  ),
  acme_svc_audit_chain_check_faults: gauge(
    "Faults that the last whole check of the audit chain, or the check in progress, has found.",
    {}
  ),
  acme_svc_audit_push_lag_rows: gauge(
    "Distance from the last row of the audit trail that a receiver has taken to the newest row, in row numbers.",
    {
      receiver: receiverNames
    }
  ),
  acme_svc_audit_push_lag_seconds: gauge(
    "Age of the oldest row of the audit trail that a receiver has not taken; 0 if it has taken all.",
    { receiver: receiverNames }
  ),
  acme_svc_database_read_only: gauge(
    "1 if the server of the database took no writes when the process last asked, else 0.",
    { role: "text" }
  ),
  acme_svc_database_up: gauge("1 if the database answers this process within two seconds, else 0.", { role: "text" }),
  acme_svc_authority_not_after_seconds: gauge(
    "Seconds until the first certificate in the chain of a CA expires; negative after that.",
    { issuer: "text" }
  ),
  acme_svc_listener_not_after_seconds: gauge(
    "Seconds until the first certificate in the chain of a listener expires; negative after that.",
    { listener: "text" }
  )
} as const

/** The name of a series that is sampled at a scrape. */
export type SampledName = NameOf<typeof series, "gauge" | "sampledCounter">

/** Counts in the series of the service, and starts the counters of these series. */
export const { begin, count, countIn } = makeCounting<typeof series>()
