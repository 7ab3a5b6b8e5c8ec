import type { AuditEvent } from "../../Audit.ts"
import type { Meaning } from "./Meaning.ts"

/** The events of the audit trail that say that something did not work. */
type Failed = "certificate_issue_failed" | "certificate_revoke_failed" | "certificate_orphaned" | "changes_lost"

/** What the events of the audit trail mean. If an event has no text, this does not compile. */
export const auditEventMeanings: { readonly [E in AuditEvent]: E extends Failed ? Meaning : Meaning | string } = {
  certificate_issued: "An order has got its certificate.",
  certificate_issue_failed: [
    "An order did not get a certificate; the detail has the cause.",
    "`acme-svc order show ORDER_ID` prints the cause and the next step.",
    "operate/runbooks/issuance-fails.md"
  ],
  account_contact_updated: "The contacts of an account were changed.",
  account_key_changed: "A client has replaced the key of its account.",
  account_deactivated: "An account was deactivated, so it can order nothing any more.",
  account_blocked: "An operator has blocked an account, which can order nothing until it is unblocked.",
  account_unblocked: "An operator has unblocked an account, which can order again.",
  account_deleted: "An operator has deleted an account with its orders.",
  order_deleted: "An operator has deleted an order.",
  orders_purged: "An operator has deleted orders whose certificates expired long ago.",
  certificate_revoked: "A certificate was revoked.",
  certificate_revoke_failed: [
    "A certificate was not revoked; the reason and the detail say why.",
    "If the certificate must be revoked, remove the cause, and run `acme-svc cert revoke SERIAL`.",
    "operate/revocation.md"
  ],
  certificate_orphaned: [
    "A signer has made a certificate, but its order ended without the certificate. The service asks the signer to revoke it.",
    "Watch the certificate with `acme-svc order orphaned` until it is revoked or stored.",
    "operate/runbooks/certificate-orphaned.md"
  ],
  certificate_orphan_revoked: "A certificate whose order ended without it was revoked.",
  certificate_orphan_kept: [
    "A certificate whose order ended without it was not revoked, and stays valid until it expires.",
    "Revoke it at the CA by its serial number.",
    "operate/runbooks/certificate-orphaned.md"
  ],
  revocation_restored: [
    "The database lacked a revocation that a list contains, so the service has stored it again.",
    "Find out why the database went back to an older state.",
    "operate/runbooks/restore.md"
  ],
  job_cancelled: "An operator has cancelled a job.",
  job_advanced: "An operator has made a job due now.",
  nonce_cleanup_completed: "An operator has deleted old nonces.",
  audit_pruned: "Rows of the audit trail that are older than the retention were deleted.",
  campaign_started: "An operator has started a campaign, which asks clients to replace certificates.",
  campaign_paused: "An operator has paused a campaign.",
  campaign_resumed: "An operator has resumed a campaign.",
  campaign_ended: "An operator has ended a campaign.",
  campaign_revocation_confirmed:
    "An operator has confirmed that a campaign revokes the certificates that are not replaced in time.",
  campaign_finished: "Every certificate of a campaign was replaced or revoked, or has expired.",
  crl_number_raised: "An operator has raised the number of a revocation list.",
  authority_compromised: [
    "An operator has marked a CA as compromised, and all its certificates are being revoked.",
    "Follow the runbook, and give the profile another CA.",
    "operate/runbooks/ca-compromised.md"
  ],
  upstream_key_changed: "An operator has replaced the key of the account at an upstream.",
  upstream_contact_updated: "An operator has changed the contacts of the account at an upstream.",
  eab_created: "An operator has created a credential.",
  eab_scope_changed: "An operator has changed what a credential may ask for.",
  eab_revoked: "An operator has revoked a credential.",
  eab_deleted: "An operator has deleted a credential.",
  operator_created: "An operator was created.",
  operator_deleted: "An operator was deleted.",
  operator_role_changed: "An operator has got another role.",
  operator_contact_updated: "The mail address of an operator was changed.",
  operator_password_link_created: "A link was made that sets the password of an operator once.",
  operator_password_changed: "The password of an operator was changed.",
  operator_disabled: "An operator was disabled, and all sessions of that operator have ended.",
  operator_enabled: "A disabled operator may sign in again.",
  operator_totp_enrolled: "An operator has set up a second factor.",
  operator_totp_disabled: "The second factor of an operator was turned off.",
  operator_recovery_codes_regenerated: "An operator has got new recovery codes, and the old ones are void.",
  session_revoked: "Sessions of an operator were ended.",
  token_created: "An API token was created.",
  token_revoked: "An API token was revoked.",
  notifications_tested: "An operator has tried receivers of notifications.",
  database_transferred: "The database was copied from another one.",
  changes_lost: [
    "A process had committed changes, but the database does not have them any more.",
    "Follow the runbook: `db_change_lost` in the log names each change.",
    "operate/runbooks/restore.md"
  ]
}
