import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of notifications. */
export const notifyMeanings = {
  notify_queued: "A notification waits to be delivered.",
  notify_enqueue_failed: [
    "A notification could not be put into the queue, and is lost.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_delivered: "A receiver has taken a notification.",
  notify_delivery_failed: [
    "A receiver did not take a notification, and it is tried again if the record says `retryable`.",
    "Look at the error; `acme-svc notify test RECEIVER` tries the receiver.",
    "operate/runbooks/notifications-stuck.md"
  ],
  notify_delivery_target_missing: [
    "This worker does not have the receiver of a notification, which waits for a worker that has it.",
    "Give all workers the same configuration, or let them reload.",
    "configure/notifications.md"
  ],
  notify_delivery_abandoned: [
    "The service has given up delivering a notification, and nobody gets it.",
    "Remove the cause that the record names; `acme-svc notify list` shows the deliveries.",
    "operate/runbooks/notifications-stuck.md"
  ],
  notify_tested: "An operator has tried receivers of notifications.",
  notify_entry_unused: [
    "A receiver is configured, and no list of enabled receivers names it.",
    "Name it in `notify.webhook_enabled` or `notify.custom_enabled`, or remove it.",
    "configure/notifications.md"
  ],
  notify_template_unused: [
    "A file in the folder of your templates replaces no template of a message.",
    "Correct the name of the file in `notify.template_dir`, or remove it.",
    "configure/notifications.md"
  ],
  notify_email_plaintext: [
    "Mails go to the server of mails without TLS.",
    "Set `notify.email.smtp_security` to another word than `none`.",
    "configure/notifications.md"
  ],
  notify_names_omitted: [
    "A certificate has more names than fit into a variable, so the program of a notification got none there.",
    "Let the program read the names from its standard input.",
    "configure/notifications.md"
  ],
  notify_expiry_unused: [
    "Certificates that expire soon are to be reported, and no receiver gets the report.",
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
    "The report of certificates that expire soon could not be made, and is tried again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_expiry_digest_retired: "A profile does not report certificates that expire soon any more.",
  notify_expiry_backfilled: "The service has found out when certificates of an older version end.",
  notify_expiry_backfill_failed: [
    "The service could not find out when certificates of an older version end, and tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_expiry_reminders_queued: "Mails about certificates that expire soon go to the contacts of accounts.",
  notify_expiry_reminders_failed: [
    "Mails to the contacts of accounts could not be queued, and it is tried again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  notify_expiry_reminders_retired: "A profile does not send mails about certificates that expire soon any more.",
  notify_expiry_reminder_dropped: "A mail to a contact was not sent, because there is nothing left to report."
} as const satisfies SomeMeanings
