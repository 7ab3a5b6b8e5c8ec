import * as Effect from "effect/Effect"
import { millisOf } from "../Time.ts"
import type { Declaration, Dictionary } from "./Declaration.ts"
import { advisory, debug, debugFailure, error, info, progress, warn } from "./Declaration.ts"
import type { Span } from "./EventLog.ts"
import { currentSpan, makeLog } from "./EventLog.ts"

/* The events of the engine itself. A program adds its own events and fields, and makes its log from both. */

/** The fields of the engine's events. */
export const engineFields = {
  address: "text",
  attempts: "int",
  client_ip: "text",
  count: "int",
  elapsed_ms: "int",
  offset_ms: "int",
  against: "text",
  error: "text",
  header: "text",
  holder: "text",
  job_id: "text",
  jobs_released: "int",
  kind: "word",
  latency_ms: "int",
  lease_seconds: "int",
  listener: "word",
  loop: "word",
  max_concurrent: "int",
  name: "text",
  not_after: "text",
  open: "int",
  owner: "text",
  path: "text",
  pending: "int",
  poll_interval_ms: "int",
  reason: "word",
  renewal_at: "text",
  retry_base_seconds: "int",
  retry_max_seconds: "int",
  roles: "text",
  rows_removed: "int",
  rows_updated: "int",
  row: "text",
  self_signed: "bool",
  set_aside: "text",
  sha256: "text",
  statement: "word",
  status: "int",
  version: "text",
  waited_ms: "int"
} as const satisfies Dictionary

/** Every event that the engine emits, with its level, outcome and fields. */
export const engineEvents = {
  // process
  server_loop_failed: error("loop", "error"),
  server_log_gap: advisory("count"),
  server_clock_skewed: warn("against", "offset_ms"),
  server_clock_stepped: warn("offset_ms"),
  server_schema_behind: error("name"),
  trace_export_failed: warn("count", "error"),
  trace_spans_dropped: warn("count"),

  // sockets
  server_connection_refused: warn("listener", "address", "open", "pending"),
  server_proxy_untrusted: advisory("listener", "address", "header"),
  tls_key_permissive: advisory("listener", "path"),
  tls_pair_generated: info("listener", "sha256", "set_aside"),
  tls_pair_renewal_announced: advisory("listener", "not_after", "renewal_at", "path", "sha256"),
  tls_pair_renewal_failed: error("listener", "error"),
  tls_pair_renewed: info("listener", "sha256", "not_after", "set_aside"),
  tls_certificate_loaded: info("listener", "sha256", "not_after", "self_signed"),
  tls_certificate_expiring: advisory("listener", "not_after"),
  tls_handshake_failed: debugFailure("listener", "client_ip", "error"),
  tls_handshake_timeout: debugFailure("listener", "client_ip", "error"),

  // database
  db_migration_applied: info("name", "elapsed_ms"),
  db_migration_failed: error("name", "error"),
  db_migration_waiting: warn("name", "holder", "waited_ms"),
  db_statement_failed: error("statement", "error"),
  db_row_unreadable: error("statement", "row", "error"),
  db_statement_slow: advisory("statement", "elapsed_ms"),
  db_pool_timeout: error("waited_ms"),
  db_read_only: error(),
  db_read_only_ended: info(),
  db_standby_left: warn("reason", "error"),
  db_standby_used: info(),
  db_listen_lost: warn("error"),
  db_listen_restored: info(),
  db_job_leases_reclaimed: advisory("rows_updated"),
  db_job_times_corrected: debug("rows_updated"),

  // one request
  request_completed: info("status", "latency_ms"),
  span_opened: debug(),
  span_closed: debug("elapsed_ms"),
  request_shed: warn(),
  request_pipeline_cut: warn("listener", "address"),
  request_deadline_exceeded: warn(),
  request_handler_panicked: error("error"),
  request_id_header_invalid: debug(),

  // queue
  job_enqueued: debug("kind", "job_id"),
  job_kind_unknown: debug("kind", "job_id", "count"),
  job_run_completed: info("kind", "job_id", "elapsed_ms"),
  job_run_retried: warn("kind", "job_id", "attempts", "error"),
  job_run_abandoned: error("kind", "job_id", "attempts", "error"),
  job_run_panicked: error("kind", "job_id", "attempts", "error"),
  job_lease_lost: advisory("kind", "job_id", "attempts"),
  job_deadline_passed: warn("kind", "job_id", "attempts"),
  job_runner_started: progress("owner"),
  job_runner_retuned: info(
    "poll_interval_ms",
    "lease_seconds",
    "retry_base_seconds",
    "retry_max_seconds",
    "max_concurrent"
  ),
  job_runner_stopped: info("owner", "jobs_released"),
  job_periodic_delayed: error("error"),
  worker_registered: info("owner", "roles", "version"),
  worker_presence_failed: warn("error"),
  worker_presence_swept: debug("rows_removed")
} as const satisfies Record<string, Declaration<keyof typeof engineFields>>

/** Writes one record of the engine's own events. */
export const { emit, emitIn } = makeLog<typeof engineFields, typeof engineEvents>(engineEvents)

/**
 * Runs an effect. All records that the effect writes have the facts of `span`. Also logs when the request or job ends.
 * `startedAt` is in epoch milliseconds.
 */
export const withinSpan = <A, E, R>(
  span: Span,
  startedAt: number,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.provideService(
    Effect.withFiber((fiber) => {
      emitIn(fiber, "span_opened", {})
      return Effect.ensuring(
        self,
        Effect.sync(() => emitIn(fiber, "span_closed", { elapsed_ms: millisOf(fiber) - startedAt }))
      )
    }),
    currentSpan,
    span
  )
