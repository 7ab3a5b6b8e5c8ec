import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of notifications. */
export const notifyMeanings = {
  notify_queued: "A notification waits to be delivered.",
  notify_enqueue_failed: [
    "A notification could not be put into the queue, so it is lost.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_delivered: "A receiver has accepted a notification.",
  notify_delivery_failed: [
    "A receiver did not accept a notification; if `retryable` is true in the record, the service tries again by itself.",
    "Look at the error; `acme-svc notify test RECEIVER` tries the receiver.",
    "operate/runbooks/notifications-stuck.md"
  ],
  notify_delivery_target_missing: [
    "This worker's configuration does not have the receiver of a notification, so the notification waits for another worker.",
    "Give all workers the same configuration, and reload it in all of them.",
    "configure/notifications.md"
  ],
  notify_delivery_abandoned: [
    "The service has given up delivering a notification, so the receiver does not get it.",
    "Remove the cause that the record names; `acme-svc notify list` shows the deliveries.",
    "operate/runbooks/notifications-stuck.md"
  ],
  notify_tested: "An operator has tried receivers of notifications.",
  notify_entry_unused: [
    "A receiver is configured, but no list of enabled receivers names it, so it gets nothing.",
    "Name it in `notify.webhook_enabled` or `notify.custom_enabled`, or remove it.",
    "configure/notifications.md"
  ],
  notify_template_unused: [
    "A file in the folder of your templates replaces no template of a message.",
    "Correct the name of the file in `notify.template_dir`, or remove it.",
    "configure/notifications.md"
  ],
  notify_email_plaintext: [
    "The service sends mails to the mail server without TLS.",
    "Set `notify.email.smtp_security` to a value other than `none`.",
    "configure/notifications.md"
  ],
  notify_names_omitted: [
    "A certificate has more names than fit into an environment variable, so the program of a notification did not get this variable.",
    "Let the program read the names from its standard input.",
    "configure/notifications.md"
  ],
  notify_expiry_unused: [
    "The service should report certificates that expire soon, but no receiver gets the report.",
    "Add the event `certificates_expiring` to a receiver, or set `notify.expiry.lead_days` to 0.",
    "configure/notifications.md"
  ],
  notify_expiry_gap: [
    "Certificates can expire between two reports.",
    "Set `notify.expiry.interval_days` to at most `notify.expiry.lead_days`.",
    "configure/notifications.md"
  ],
  notify_expiry_digest_queued: "A report of certificates that expire soon waits to be delivered.",
  notify_expiry_digest_skipped: "No report of certificates that expire soon was needed.",
  notify_expiry_digest_failed: [
    "The report of certificates that expire soon could not be made; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_expiry_digest_retired: "A profile does not report certificates that expire soon any more.",
  notify_expiry_backfilled: "The service has found out when certificates expire that an older version has stored.",
  notify_expiry_backfill_failed: [
    "The service could not find out when certificates expire that an older version has stored; it tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_expiry_reminders_queued: "Mails about certificates that expire soon go to the contacts of accounts.",
  notify_expiry_reminders_failed: [
    "Mails to the contacts of accounts could not be queued; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_expiry_reminders_retired: "A profile does not send mails about certificates that expire soon any more.",
  notify_expiry_reminder_dropped: "A mail to a contact was not sent, because there is nothing left to report."
} as const satisfies SomeMeanings
