import type { Declaration } from "../../engine/telemetry/Declaration.ts"
import { advisory, debug, error, info, warn } from "../../engine/telemetry/Declaration.ts"
import type { FieldName } from "./EventField.ts"

/** The log records about notifications. */
export const notificationEvents = {
  notify_queued: debug("profile", "backend", "entry", "hook", "delivery_id"),
  notify_enqueue_failed: error("profile", "hook", "error"),
  notify_delivered: info("profile", "backend", "entry", "hook", "attempts", "delivery_id"),
  notify_delivery_failed: warn(
    "profile",
    "backend",
    "entry",
    "hook",
    "delivery_id",
    "retryable",
    "status",
    "exit_code",
    "error"
  ),
  notify_delivery_target_missing: warn("profile", "backend", "entry", "hook", "delivery_id"),
  notify_delivery_abandoned: warn("profile", "backend", "entry", "hook", "delivery_id", "error"),
  notify_tested: info("username", "surface", "count", "failed"),
  notify_entry_unused: advisory("key"),
  notify_template_unused: advisory("path"),
  notify_email_plaintext: advisory("key"),
  notify_names_omitted: advisory("profile", "entry", "hook", "delivery_id", "total"),
  notify_expiry_unused: advisory("key"),
  notify_expiry_gap: advisory("key"),
  notify_expiry_digest_queued: info("profile", "total"),
  notify_expiry_digest_skipped: debug("profile", "total"),
  notify_expiry_digest_failed: error("profile", "error"),
  notify_expiry_digest_retired: info("profile"),
  notify_expiry_backfilled: info("profile", "rows_updated"),
  notify_expiry_backfill_failed: error("profile", "error"),
  notify_expiry_reminders_queued: info("profile", "count", "limited"),
  notify_expiry_reminders_failed: error("profile", "error"),
  notify_expiry_reminders_retired: info("profile"),
  notify_expiry_reminder_dropped: info("profile", "account_id", "delivery_id")
} as const satisfies Record<string, Declaration<FieldName>>
