import type { SomeMeanings } from "./EventMeaning.ts"

/** The log events about the audit trail: its rows, its chain and its receivers. */
export const auditMeanings = {
  audit_write_failed: [
    "A row of the audit trail could not be written; the record has the content of the row.",
    "Keep the record as evidence, and look at the error; most often the database does not answer.",
    "operate/monitor.md"
  ],
  audit_reaper_swept: "Rows of the audit trail that are older than the retention were deleted.",
  audit_reaper_failed: [
    "Old rows of the audit trail could not be deleted; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  audit_reaper_waits: [
    "Old rows of the audit trail are kept, because a receiver has not taken them.",
    "Look at `acme-svc audit receivers`; if the receiver is gone for good, remove its section.",
    "operate/runbooks/audit-receiver-behind.md"
  ],
  audit_reverse_dns_failed: [
    "The name of a client's address could not be looked up, so the audit trail has only the address.",
    "If you need the names, check `dns.resolver`; otherwise set `audit.reverse_dns` to false.",
    "reference/configuration.md"
  ],
  audit_reverse_dns_timeout: [
    "The name of a client's address was not found in time, so the audit trail has only the address.",
    "If you need the names, raise `audit.reverse_dns_timeout_ms`; otherwise set `audit.reverse_dns` to false.",
    "reference/configuration.md"
  ],
  audit_chain_begun: "The chain of the audit trail begins after the row in the record.",
  audit_chain_postponed: [
    "New rows of the audit trail are not chained yet, because a transaction is still open.",
    "If this repeats, find the session with the open transaction, and end it.",
    "operate/debugging.md"
  ],
  audit_chain_failed: [
    "New rows of the audit trail could not be chained; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/audit-chain-faulty.md"
  ],
  audit_chain_faulty: [
    "Rows of the audit trail, or links of its chain, were changed, removed, inserted or reordered.",
    "Treat this as an intrusion: first copy the database, then run `acme-svc audit verify`.",
    "operate/runbooks/audit-chain-faulty.md"
  ],
  audit_chain_checked:
    "The daily check has gone through the whole chain of the audit trail, and the record counts its faults.",
  audit_chain_check_failed: [
    "The daily check of the audit trail could not continue; the service tries again by itself.",
    "Look at the error; `acme-svc audit verify` checks the trail at once.",
    "operate/runbooks/audit-chain-faulty.md"
  ],
  audit_chain_key_made: "A worker has made the key that signs the heads of the audit chain.",
  audit_chain_key_permissive: [
    "Other users of this host can read the key that signs the heads of the audit chain.",
    "Remove the rights of other users with `chmod 0600`; if others may have read the key, delete the file, and a worker makes a new key.",
    "operate/hardening.md"
  ],
  audit_head_signed: "A worker has signed the head of the audit chain.",
  audit_head_unsigned: [
    "The head of the audit chain cannot be signed; the chain itself continues.",
    "Correct the file of `audit.chain_key_path` that the record names.",
    "operate/hardening.md"
  ],
  audit_push_begun: "The service begins to push the audit trail to a receiver.",
  audit_push_failed: [
    "A receiver did not accept rows of the audit trail; the rows wait, and the service tries again by itself.",
    "Repair the receiver, or the connection that the error names; `acme-svc audit receivers` shows the state of the receiver.",
    "operate/runbooks/audit-receiver-behind.md"
  ],
  audit_push_recovered: "A receiver accepts rows of the audit trail again.",
  audit_push_postponed: [
    "New rows of the audit trail are not pushed yet, because a transaction is still open.",
    "If this repeats, find the session with the open transaction, and end it.",
    "operate/debugging.md"
  ],
  audit_push_rows_lost: [
    "The retention has deleted rows of the audit trail that a receiver never got.",
    "If you need the rows, take them from a backup or from another receiver.",
    "operate/audit.md"
  ],
  audit_push_retired: [
    "The configuration does not have a receiver of the audit trail any more, so nothing is pushed there.",
    "If this was intended, do nothing; otherwise write the section of the receiver again.",
    "operate/audit.md"
  ]
} as const satisfies SomeMeanings
