import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of revocation, of revocation lists, and of campaigns. */
export const revocationMeanings = {
  key_burnt: [
    "A certificate was revoked because others know its key. The service issues no certificate for this key any more.",
    "Tell the owner of the client to make a new key.",
    "operate/runbooks/revoke-by-serial.md"
  ],
  key_certificates_revoked: [
    "Somebody has proven that others know a key, and the service has revoked all certificates with that key.",
    "Tell the owners of those certificates to make new keys; the audit trail has a row for each certificate.",
    "operate/runbooks/revoke-by-serial.md"
  ],
  certificate_revoked: "A certificate was revoked.",
  certificate_revoke_queued: "A job asks the signer to revoke a certificate.",
  certificate_revoke_signer_failed: [
    "The signer did not revoke a certificate; unless the refusal is final, the service asks again.",
    "Remove the cause that the record names; `acme-svc jobs show JOB_ID` says when the next attempt is.",
    "operate/revocation.md"
  ],
  certificate_revoke_abandoned: [
    "The service has given up asking the signer to revoke a certificate, so the certificate is still valid.",
    "Remove the cause that the record names, and run `acme-svc order revoke ORDER_ID`.",
    "operate/revocation.md"
  ],
  certificate_revoke_rejected: [
    "A request to revoke a certificate was refused.",
    "Look at the reason, which is the problem type; if the certificate must be revoked, run `acme-svc cert revoke SERIAL`.",
    "operate/revocation.md"
  ],
  local_ca_issuer_mismatch: [
    "A certificate cannot be revoked, because the CA that signed it has no revocation list here.",
    "Give this CA to a profile again, or wait until `acme-svc crl list` shows its first list.",
    "operate/revocation.md"
  ],
  local_ca_crl_republished: "A CA has signed a new revocation list.",
  local_ca_crl_pruned: "Certificates that have expired were removed from a revocation list.",
  local_ca_crl_prune_failed: [
    "Certificates that have expired could not be removed from a revocation list; the service tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ],
  local_ca_crl_initialization_failed: [
    "The revocation list of a CA cannot be made, so certificates of this CA cannot be revoked.",
    "Correct the file or the entry that the record names; a worker tries again by itself, or at its next start.",
    "operate/revocation.md"
  ],
  local_ca_crl_exported: "The files of a revocation list are up to date again.",
  local_ca_crl_export_failed: [
    "A worker could not write the files of a revocation list; the list itself is served.",
    "Make the folder of `signer.local_ca.crl_path` writable, or make room on its disk; the worker tries again every half minute.",
    "operate/revocation.md"
  ],
  local_ca_crl_not_stored: [
    "Another worker has signed the revocation list in the meantime, so this one was discarded.",
    "Do nothing."
  ],
  local_ca_crl_stale: [
    "The revocation list of a CA has expired, and programs that check it refuse certificates of that CA.",
    "Start a worker that has the key of the CA; `acme-svc crl list` shows all lists.",
    "operate/runbooks/revocation-list-due.md"
  ],
  local_ca_crl_went_back: [
    "The database has an older revocation list than this process, and the process continues to serve the newer one.",
    "Find out why the database went back; the service stores the revocations of the newer list again.",
    "operate/runbooks/restore.md"
  ],
  local_ca_revocations_restored: [
    "The database lacked revocations that a list contains, so the service has stored them again.",
    "Find out why the database went back to an older state.",
    "operate/runbooks/restore.md"
  ],
  local_ca_ledger_imported:
    "A CA had no list in the database, so the service has read the entries from the file of its list.",
  local_ca_orphaned_crl: [
    "A CA has revoked certificates, but no profile names the CA, so nobody signs its list.",
    "Give the CA to a profile again, until its revoked certificates have expired.",
    "configure/rotation.md"
  ],

  campaign_filled: "The service has found all certificates of a campaign.",
  campaign_finished: "Every certificate of a campaign was replaced or revoked, or has expired.",
  campaign_revoke_failed: [
    "A campaign could not revoke some of the certificates that were not replaced in time. It tries again each hour.",
    "The records before this one name these certificates and say why; `acme-svc campaign show ID` counts all that remain.",
    "configure/campaigns.md"
  ],
  campaign_revoked: "A campaign has revoked certificates that were not replaced in time, as an operator has confirmed.",
  campaign_reminders_queued: "Mails about a campaign go to the contacts of accounts.",
  campaign_round_failed: [
    "The service could not continue its campaigns; it tries again by itself.",
    "Look at the error; most often the database does not answer.",
    "operate/runbooks/database-away.md"
  ]
} as const satisfies SomeMeanings
