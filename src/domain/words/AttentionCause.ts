/* What may need the attention of operators. */

/** How urgent a cause is. An alarm means that somebody gets no certificate, or soon will not. */
export type Severity = "alarm" | "warning"

/** What the vocabulary says about a cause. */
interface CauseDeclaration {
  readonly severity: Severity
  /** The page below `docs/operate/runbooks` that says what to do, without its ending. */
  readonly runbook: string
}

/**
 * Every cause for which the service asks for attention, the most urgent first. Lists show them in this order. The list
 * of an operator's first page, `acme-svc attention` and `GET /api/attention` have the same causes.
 */
export const attentionCauses = {
  disk_full: { severity: "alarm", runbook: "disk-full" },
  database_read_only: { severity: "alarm", runbook: "database-away" },
  changes_lost: { severity: "alarm", runbook: "restore" },
  acme_absent: { severity: "alarm", runbook: "process-gone" },
  worker_absent: { severity: "alarm", runbook: "no-worker" },
  ca_compromised: { severity: "alarm", runbook: "ca-compromised" },
  ca_ended: { severity: "alarm", runbook: "ca-ends" },
  profile_degraded: { severity: "alarm", runbook: "issuance-fails" },
  list_stopped: { severity: "alarm", runbook: "revocation-list-due" },
  list_expired: { severity: "alarm", runbook: "revocation-list-due" },
  sweep_stopped: { severity: "alarm", runbook: "job-cannot-be-ended" },
  listener_certificate_ended: { severity: "alarm", runbook: "listener-certificate" },
  upstream_away: { severity: "alarm", runbook: "upstream-away" },
  script_fails: { severity: "alarm", runbook: "script-hangs" },
  queue_stalled: { severity: "alarm", runbook: "no-worker" },
  audit_chain_faulty: { severity: "alarm", runbook: "audit-chain-faulty" },
  jobs_retried: { severity: "warning", runbook: "job-cannot-be-ended" },
  jobs_failed: { severity: "warning", runbook: "issuance-fails" },
  job_runs_long: { severity: "warning", runbook: "job-cannot-be-ended" },
  process_gone: { severity: "warning", runbook: "process-gone" },
  loops_failing: { severity: "warning", runbook: "server-errors" },
  renewals_missing: { severity: "warning", runbook: "issuance-fails" },
  ca_ending: { severity: "warning", runbook: "ca-ends" },
  list_missing: { severity: "warning", runbook: "revocation-list-due" },
  list_due: { severity: "warning", runbook: "revocation-list-due" },
  listener_certificate_ending: { severity: "warning", runbook: "listener-certificate" },
  client_loops: { severity: "warning", runbook: "client-loops" },
  second_factor_refused: { severity: "warning", runbook: "second-factor-lost" },
  key_compromised: { severity: "warning", runbook: "revoke-by-serial" },
  campaign_unconfirmed: { severity: "warning", runbook: "ca-compromised" },
  certificates_orphaned: { severity: "warning", runbook: "certificate-orphaned" },
  notifications_stuck: { severity: "warning", runbook: "notifications-stuck" },
  audit_receiver_behind: { severity: "warning", runbook: "audit-receiver-behind" },
  audit_chain_unchecked: { severity: "warning", runbook: "audit-chain-faulty" },
  standby_unused: { severity: "warning", runbook: "database-away" },
  profile_bypasses: { severity: "warning", runbook: "issuance-fails" }
} as const satisfies { readonly [cause: string]: CauseDeclaration }

/** A cause for which the service asks for attention. */
export type AttentionCause = keyof typeof attentionCauses

/** The causes, the most urgent first. */
export const attentionCauseNames = Object.keys(attentionCauses) as ReadonlyArray<AttentionCause>

/** How urgent a cause is, and the page that says what to do. */
export const declarationOf = (cause: AttentionCause): CauseDeclaration => attentionCauses[cause]
