/**
 * The vocabulary of the log. Every record that the service writes is declared here once, with its level, outcome and
 * fields (docs/decisions/log-and-metrics.md, "A closed vocabulary of events"). The events of the engine are declared in
 * the engine's own files.
 */

import type { Declaration } from "../../engine/telemetry/Declaration.ts"
import { advisory, debug, debugFailure, error, info, progress, warn } from "../../engine/telemetry/Declaration.ts"
import { engineEvents } from "../../engine/telemetry/EngineLog.ts"
import { makeLog } from "../../engine/telemetry/EventLog.ts"
import type { FieldName, fields } from "./EventField.ts"
import { notificationEvents } from "./NotificationEvent.ts"
import { operatorEvents } from "./OperatorEvent.ts"

export const events = {
  ...engineEvents,
  ...operatorEvents,
  ...notificationEvents,

  // process
  server_config_loaded: info("path", "file_present", "keys_from_file", "keys_from_env"),
  server_config_file_absent: advisory("path"),
  server_config_file_permissive: advisory("path"),
  server_config_fault_ignored: advisory("key", "error"),
  server_logging_key_unused: advisory("key"),
  server_listening: info("address", "tls", "base_url"),
  server_listener_stopped: info("listener", "address"),
  server_role_no_worker: advisory("roles"),
  server_config_reloaded: info("generation", "listeners_rebound", "changed_keys", "elapsed_ms"),
  server_config_reload_refused: warn("error"),
  server_config_reload_failed: error("error"),
  server_logging_filter_overridden: advisory("source"),
  server_reload_supervisor_gone: error(),
  server_socket_bind_failed: error("address", "error"),
  metrics_listening: info("address"),
  metrics_config_invalid: error("key", "error"),
  metrics_sample_failed: warn("series", "error"),
  metrics_socket_bind_failed: error("address", "error"),
  publish_config_invalid: error("key", "error"),
  publish_listening: info("address"),
  publish_socket_bind_failed: error("address", "error"),
  server_fatal_error: error("error"),
  server_processes_supervised: info("processes", "connections"),
  server_processes_exceed_cores: advisory("processes", "cores", "connections"),
  server_process_started: progress("process", "pid", "roles"),
  server_process_ready: info("process", "elapsed_ms"),
  server_process_ended: warn("process", "exit_code", "signal", "wait_ms"),
  server_shutdown_started: progress("signal"),
  server_shutdown_completed: info("requests_cut", "jobs_released", "elapsed_ms"),
  profile_mounted: info("profile", "backend"),
  profile_unmounted: advisory("profile"),
  profile_degraded: error("profile", "error"),
  profile_recovered: info("profile"),
  profile_init_failed: error("profile", "error"),
  proxy_configured: info("http", "https", "no_proxy_entries", "source"),
  tls_disabled: advisory("base_url"),
  tls_base_url_mismatch: advisory("key", "base_url"),

  // database
  db_commits_unsynced: advisory("key"),
  db_rights_missing: warn("roles", "rights"),
  db_change_lost: error("change", "since", "profile", "account_id", "order_id", "cert_serial"),
  db_went_back: error("count", "since"),
  db_opened: info("database_url", "backend", "pool_max"),

  // one request
  request_refused: warn("reason", "detail"),
  request_rate_limited: warn("limit", "account_id", "address"),
  server_loop_given_up: error("loop"),

  // signed requests
  jws_rejected: warn("reason"),
  jws_signature_invalid: warn("account_id", "key_fp"),
  nonce_rejected: debug("reason", "nonce_fp"),
  nonce_replayed: warn("nonce_fp"),
  key_change_completed: info("account_id", "key_fp", "previous_key_fp"),
  key_change_rejected: warn("account_id", "reason"),
  account_request_refused: warn("account_id", "reason"),

  // accounts and orders
  account_created: info("account_id", "key_fp"),
  eab_verified: info("kid", "account_id"),
  eab_rejected: warn("kid", "reason"),
  account_found: debug("account_id", "key_fp"),
  account_key_refused: warn("key_fp", "reason"),
  account_updated: info("account_id", "key_fp"),
  account_deactivated: info("account_id"),
  order_created: info("order_id", "identifiers"),
  order_replaces_accepted: info("order_id", "cert_serial"),
  order_replaces_rejected: warn("reason"),
  renewal_info_rejected: debug("reason"),
  renewal_info_hook_failed: warn("error"),
  order_rejected: warn("reason", "identifiers"),
  order_finalize_queued: info("order_id"),
  order_finalize_rejected: warn("order_id", "reason"),
  csr_rejected: warn("order_id", "reason"),
  authz_deactivated: info("authz_id", "order_id"),
  authz_deactivation_refused: warn("authz_id", "reason"),

  // filter and inventory
  filter_disabled: advisory("profile"),
  filter_check_unused: advisory("profile", "check"),
  filter_request_blocked: warn("profile", "listener", "stage", "rule", "check", "detail"),
  filter_denied: warn("profile", "stage", "rule", "check", "detail"),
  filter_rule_warned: advisory("profile", "listener", "stage", "rule"),
  filter_undecided: error("profile", "listener", "stage", "rule", "check", "error"),
  ipam_lookup_failed: warn("backend", "error"),
  ipam_tls_verification_disabled: advisory("profile"),
  script_not_executable: advisory("key", "path"),

  // challenges
  challenge_validation_requested: progress("challenge_id", "type", "identifier"),
  challenge_trigger_rate_limited: warn("account_id", "in_flight"),
  challenge_validation_enqueue_failed: error("challenge_id", "error"),
  challenge_validated: info("challenge_id", "type", "identifier", "elapsed_ms"),
  challenge_failed: warn("challenge_id", "type", "identifier", "reason"),
  challenge_validation_failed: warn("identifier", "reason", "error"),
  challenge_validation_postponed: error("challenge_id", "identifier", "error"),
  challenge_validation_timeout: warn("identifier", "elapsed_ms", "error"),
  challenge_validation_abandoned: warn("challenge_id", "error"),
  challenge_validation_bypassed: advisory("profile"),
  challenge_verdict_superseded: advisory("challenge_id", "authz_id"),
  challenge_address_denied: warn("identifier", "address", "rule"),
  challenge_http_01_loaded: info("identifier", "address", "status", "hop", "body_bytes"),
  challenge_http_01_redirect: info("identifier", "address", "status", "hop", "body_bytes"),
  challenge_http_01_matched: info("identifier", "elapsed_ms"),
  challenge_http_01_mismatch: warn("identifier", "status", "body_bytes"),
  challenge_http_01_mismatch_body: debug("identifier", "body_preview"),
  challenge_dns_01_matched: info("identifier", "answers"),
  challenge_dns_01_mismatch: warn("identifier", "answers"),
  challenge_tls_alpn_01_matched: info("identifier"),
  challenge_tls_alpn_01_mismatch: warn("identifier", "reason"),

  // issuance
  local_ca_loaded: info("issuer", "not_after", "key_type"),
  local_ca_generated: info("path", "issuer", "not_after", "key_type", "sha256"),
  local_ca_key_permissive: advisory("path"),
  local_ca_expiring: advisory("issuer", "not_after"),
  local_ca_is_root: advisory("issuer"),
  local_ca_incomplete: advisory("issuer", "path", "sha256", "reason"),
  local_ca_requested_validity_discarded: advisory("order_id"),
  local_ca_issuer_expired: error("issuer"),
  local_ca_lint_failed: error("order_id", "check"),
  local_ca_leaf_discarded: advisory("order_id", "cert_serial"),
  local_ca_leaf_issued: info("order_id", "cert_serial"),
  order_finalized: info("order_id", "cert_serial", "elapsed_ms"),
  certificate_served: debug("order_id", "account_id"),
  order_extensions_not_granted: advisory("order_id", "cert_serial", "extensions"),
  order_finalize_bad_csr: warn("order_id", "error"),
  order_finalize_issuance_failed: error("order_id", "error"),
  order_finalize_persistence_failed: error("order_id", "error"),
  order_finalize_chain_rejected: error("order_id", "check", "cert_serial"),
  order_finalize_authority_withdrawn: warn("order_id"),
  order_finalize_abandoned: warn("order_id", "error"),
  certificate_orphaned: error("order_id", "profile", "cert_serial", "identifiers", "reason"),
  certificate_orphan_revoked: info("order_id", "profile", "cert_serial"),
  certificate_orphan_stored: info("order_id", "profile", "cert_serial"),
  certificate_orphan_revoke_failed: error("order_id", "profile", "cert_serial", "error"),
  certificate_orphan_search_failed: error("order_id", "profile", "error"),
  certificate_orphan_kept: error("order_id", "profile", "cert_serial", "error"),

  signer_relay_eab_secret_in_config: advisory("profile"),
  upstream_registered: info("profile", "target_host"),
  upstream_account_key_permissive: advisory("path"),
  upstream_account_reused: info("profile", "target_host"),
  upstream_request_failed: warn("profile", "status", "error", "body_preview"),
  upstream_order_lost: advisory("order_id", "attempts"),
  upstream_replaces_refused: warn("order_id", "error"),
  upstream_record_left: warn("identifier", "error"),
  upstream_bad_nonce_retry: debug("target_host"),
  upstream_relay_succeeded: info("order_id", "profile"),
  upstream_relay_failed: warn("order_id", "profile", "error"),
  http_01_responder_mounted: info("profile"),
  http_01_token_store_failed: error("error"),
  signer_script_failed: warn("hook", "exit_code", "elapsed_ms", "error", "output"),
  signer_script_timeout: warn("hook", "exit_code", "elapsed_ms", "error", "output"),

  // revocation
  key_burnt: warn("key_fp", "order_id", "scope"),
  key_certificates_revoked: warn("key_fp", "job_id", "count"),
  certificate_revoked: info("order_id", "cert_serial", "code"),
  certificate_revoke_queued: info("order_id", "cert_serial", "code"),
  certificate_revoke_signer_failed: error("order_id", "job_id", "error"),
  certificate_revoke_abandoned: error("order_id", "job_id", "error"),
  certificate_revoke_rejected: warn("cert_serial", "reason"),
  local_ca_issuer_mismatch: error("order_id", "issuer"),
  local_ca_crl_republished: info("issuer", "crl_number", "entries"),
  local_ca_crl_pruned: info("issuer", "crl_number", "entries", "rows_removed"),
  local_ca_crl_prune_failed: error("issuer", "error"),
  local_ca_crl_initialization_failed: error("issuer", "error"),
  local_ca_crl_exported: info("issuer", "path"),
  local_ca_crl_export_failed: error("issuer", "error"),
  local_ca_crl_not_stored: warn("issuer", "crl_number"),
  local_ca_crl_stale: error("issuer", "next_update"),
  local_ca_crl_went_back: error("issuer", "crl_number", "served_number"),
  local_ca_revocations_restored: advisory("issuer", "path", "crl_number", "entries", "rows_imported"),
  local_ca_ledger_imported: info("issuer", "crl_number", "entries", "rows_imported"),
  local_ca_orphaned_crl: advisory("issuer"),

  // sweeps
  nonce_reaper_swept: debug("rows_removed"),
  http_01_token_reaper_swept: debug("rows_removed"),
  http_01_token_reaper_failed: error("error"),
  nonce_reaper_failed: error("error"),
  admin_session_reaper_swept: debug("rows_removed"),
  admin_session_reaper_failed: error("error"),
  order_reaper_swept: info("profile", "rows_removed"),
  order_reaper_failed: error("error"),
  order_purge_completed: info("rows_removed"),
  audit_reaper_swept: info("rows_removed"),
  audit_reaper_failed: error("error"),
  job_reaper_swept: debug("rows_removed"),
  job_reaper_failed: error("error"),
  audit_reverse_dns_failed: debugFailure("address"),
  audit_reverse_dns_timeout: debugFailure("address"),
  audit_write_failed: error("audit_event", "order_id", "cert_serial", "error")
} as const satisfies Record<string, Declaration<FieldName>>

/** The name of an event. */
export type EventName = keyof typeof events

/** Writes one record of any event of the vocabulary. */
export const { emit } = makeLog<typeof fields, typeof events>(events)
