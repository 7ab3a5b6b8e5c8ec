import type { AlertRule } from "./AlertRules.ts"
import { alertRules, rendered } from "./AlertRules.ts"

/*
 * The rules that fire in no recording, each with series that exceed its limits. These series reveal a rule that can
 * never fire because a limit or a label is wrong.
 */

/** The alert does not fire at `quiet`, and fires with these labels at `fires`. */
interface Crossing {
  /** One sample for each minute, in the notation of promtool. */
  readonly series: Readonly<Record<string, string>>
  readonly quiet: string
  readonly fires: string
  readonly labels: Readonly<Record<string, string>>
}

const crossing = (
  series: Crossing["series"],
  fires: string,
  labels: Crossing["labels"] = {},
  quiet = "4m"
): Crossing => ({ series, quiet, fires, labels })

const [profile, instance, issuer] = ["default", "acme:3002", "ca-1"]

/** The series of each rule, by the name of its alert. */
export const crossings: Readonly<Record<string, Crossing>> = {
  IssueFailures: crossing(
    { "acme_svc_certificate_issue_failures_total{profile=\"default\",reason=\"badCSR\"}": "0x4 0+1x30" },
    "30m",
    { profile, reason: "badCSR" }
  ),
  NothingIssued: crossing({ "acme_svc_certificates_issued_total{profile=\"default\"}": "7x70" }, "70m", {}, "59m"),
  Shedding: crossing({ "acme_svc_requests_total{route=\"/newOrder\",status=\"503\"}": "0x4 0+1x20" }, "15m"),
  ServerErrors: crossing({
    "acme_svc_requests_total{route=\"/newOrder\",status=\"201\"}": "0+49x24",
    "acme_svc_requests_total{route=\"/newOrder\",status=\"500\"}": "0x4 0+1x20"
  }, "15m"),
  SlowRequests: crossing({
    "acme_svc_request_duration_seconds_bucket{le=\"1\",route=\"/newOrder\"}": "0+9x24",
    "acme_svc_request_duration_seconds_bucket{le=\"2.5\",route=\"/newOrder\"}": "0+9x4 37+10x20",
    "acme_svc_request_duration_seconds_bucket{le=\"+Inf\",route=\"/newOrder\"}": "0+9x4 37+10x20"
  }, "15m"),
  PoolExhausted: crossing(
    {
      "acme_svc_database_pool_connections{instance=\"acme:3002\",state=\"busy\"}": "3x24",
      "acme_svc_database_pool_connections{instance=\"acme:3002\",state=\"idle\"}": "1x4 0x20"
    },
    "15m",
    { instance }
  ),
  QueueStalled: crossing(
    { "acme_svc_job_oldest_ready_seconds{kind=\"validate\"}": "120x4 121x20" },
    "15m",
    { kind: "validate" }
  ),
  NotificationsStuck: crossing({ "acme_svc_notify_oldest_undelivered_seconds": "3600x4 3601x20" }, "15m"),
  JobsFailed: crossing(
    { "acme_svc_jobs{kind=\"validate\",status=\"failed\"}": "2x20 3x20" },
    "25m",
    { kind: "validate" },
    "20m"
  ),
  LoopRestarted: crossing(
    { "acme_svc_loop_restarts_total{instance=\"acme:3002\",loop=\"crl_export\"}": "0x4 1x20" },
    "6m",
    { instance, loop: "crl_export" }
  ),
  RowUnreadable: crossing({ "acme_svc_database_rows_unreadable_total": "0x4 1x20" }, "6m"),
  CrlDue: crossing({ "acme_svc_crl_next_update_seconds{issuer=\"ca-1\"}": "172800x4 172799x80" }, "70m", { issuer }),
  AuthorityEndsIn90Days: crossing(
    { "acme_svc_authority_not_after_seconds{issuer=\"ca-1\"}": "7776000x4 7775999x80" },
    "70m",
    { issuer }
  ),
  AuthorityEndsIn7Days: crossing(
    { "acme_svc_authority_not_after_seconds{issuer=\"ca-1\"}": "604800x4 604799x80" },
    "70m",
    { issuer }
  ),
  ListenerCertificateEnding: crossing(
    { "acme_svc_listener_not_after_seconds{instance=\"acme:3002\",listener=\"acme\"}": "1209600x4 1209599x80" },
    "70m",
    { instance, listener: "acme" }
  ),
  ListenerCertificateEnds: crossing(
    { "acme_svc_listener_not_after_seconds{instance=\"acme:3002\",listener=\"acme\"}": "172800x4 172799x20" },
    "15m",
    { instance, listener: "acme" }
  ),
  DatabaseReadOnly: crossing(
    { "acme_svc_database_read_only{instance=\"acme:3002\"}": "0x4 1x20" },
    "8m",
    { instance }
  ),
  DatabaseRefuses: crossing(
    { "acme_svc_database_failures_total{cause=\"refused\",instance=\"acme:3002\"}": "0x4 1x20" },
    "12m",
    { instance, cause: "refused" }
  ),
  StandbyUnused: crossing(
    { "acme_svc_database_standby_reads_total{instance=\"acme:3002\",outcome=\"behind\"}": "0x4 0+1x80" },
    "40m",
    { instance, outcome: "behind" }
  ),
  SignerFails: crossing(
    { "acme_svc_signer_failures_total{cause=\"script_failed\",profile=\"default\"}": "0x4 2x20" },
    "10m",
    { profile, cause: "script_failed" }
  ),
  CertificateOrphaned: crossing(
    {
      "acme_svc_orphaned_certificates_total{profile=\"default\",state=\"found\"}": "1x4 3x80",
      "acme_svc_orphaned_certificates_total{profile=\"default\",state=\"revoked\"}": "1x4 2x80"
    },
    "40m",
    { profile }
  ),
  JobsRetried: crossing({ "acme_svc_jobs_retried{kind=\"validate\"}": "0x4 1x80" }, "70m", { kind: "validate" }),
  AuditChainFaulty: crossing({ "acme_svc_audit_chain_check_faults": "0x4 1x20" }, "6m"),
  AuditChainUnchecked: crossing({ "acme_svc_audit_chain_checked_seconds": "259200x4 259201x30" }, "25m"),
  AuditReceiverBehind: crossing(
    { "acme_svc_audit_push_lag_seconds{receiver=\"syslog\"}": "1800x4 1801x20" },
    "15m",
    { receiver: "syslog" }
  )
}

const testOf = ({ alert, annotations: { runbook, summary }, labels: own }: AlertRule) => {
  const crossed = crossings[alert]
  if (crossed === undefined) return []
  const { fires, labels, quiet, series } = crossed
  const exp_annotations = { runbook, summary: rendered(summary, labels) }
  return [{
    interval: "1m",
    input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [
      { eval_time: quiet, alertname: alert, exp_alerts: [] },
      { eval_time: fires, alertname: alert, exp_alerts: [{ exp_labels: { ...own, ...labels }, exp_annotations }] }
    ]
  }]
}

/** Returns the file of `promtool test rules` with all these series. */
export const crossingsText = (rules: string): string =>
  JSON.stringify({ rule_files: [rules], evaluation_interval: "1m", tests: alertRules.flatMap(testOf) })
