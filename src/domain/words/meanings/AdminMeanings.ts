import type { SomeMeanings } from "./EventMeaning.ts"

/** The events of operators: their listener, their sign-ins and what they do. */
export const adminMeanings = {
  admin_listening: "The listener for operators takes connections.",
  admin_origin_resolved: "The panel accepts forms that come from the origin in the record.",
  admin_template_unused: [
    "A file in the folder of your templates replaces no template of the panel.",
    "Correct the name of the file in `admin.template_dir`, or remove it.",
    "start/panel.md"
  ],
  admin_config_invalid: [
    "The listener for operators has the address of another listener.",
    "Give `admin.bind_address` a port of its own.",
    "reference/configuration.md"
  ],
  admin_socket_bind_failed: [
    "The listener for operators cannot listen at its address.",
    "End the other program at that address, or change `admin.bind_address`.",
    "operate/runbooks/process-gone.md"
  ],
  admin_request_refused: [
    "A request to the panel or the API was refused, because its session, role or origin does not permit it.",
    "If the reason is origin, open the panel at `admin.base_url`; if it is role, give the operator another role with `acme-svc admin user role NAME ROLE`.",
    "operate/operators.md"
  ],
  admin_export_completed: "An operator has exported a list.",
  admin_login_succeeded: "An operator has signed in.",
  admin_login_mfa_pending: "The password of an operator was right, but the second factor is still missing.",
  admin_login_failed: [
    "A sign-in has failed. The record has the reason, which is not shown to the person who tried.",
    "If an operator has forgotten the password, run `acme-svc admin user passwd NAME`; if it was a stranger, refuse the address in `admin.filter.rules`.",
    "operate/operators.md"
  ],
  admin_login_guessed: [
    "Somebody is guessing the password of an operator: at least ten wrong passwords came in a row.",
    "Ask the operator; if it was somebody else, make the panel unreachable from that network.",
    "operate/hardening.md"
  ],
  admin_mfa_failed: [
    "The code of a second factor was refused.",
    "Ask the operator; if it was somebody else, that person knows the password: run `acme-svc admin user passwd NAME`.",
    "operate/runbooks/second-factor-lost.md"
  ],
  admin_mfa_verified: "An operator has proven the second factor.",
  admin_mfa_enrolled: "An operator has set up a second factor.",
  admin_mfa_disabled: "An operator has turned the second factor off.",
  admin_mfa_recovery_code_used: [
    "An operator has signed in with a recovery code, and the record says how many are left.",
    "If few are left, make new ones with `acme-svc admin user totp recovery-codes NAME`.",
    "operate/operators.md"
  ],
  admin_mfa_recovery_codes_reissued: "An operator has got new recovery codes, and the old ones are void.",
  admin_step_up_failed: [
    "A signed-in operator gave a wrong password when an act asked for the password again.",
    "Ask the operator; if it was somebody else, run `acme-svc admin session revoke --user NAME`.",
    "operate/operators.md"
  ],
  admin_logout: "An operator has signed out.",
  admin_password_hash_unreadable: [
    "The stored password of an operator cannot be read, so the operator cannot sign in.",
    "Set a new one with `acme-svc admin user passwd NAME`.",
    "operate/operators.md"
  ],
  admin_role_unknown: [
    "An operator has a role that this version does not know.",
    "Give the operator a known role with `acme-svc admin user role NAME ROLE`.",
    "operate/operators.md"
  ],
  admin_session_revoked: "An operator has ended sessions.",
  admin_operator_created: "An operator was created.",
  admin_operator_deleted: "An operator was deleted.",
  admin_operator_disabled: "An operator was disabled, and all sessions of that operator have ended.",
  admin_operator_enabled: "A disabled operator may sign in again.",
  admin_operator_role_changed: "An operator has got another role.",
  admin_operator_contact_changed: "The mail address of an operator was changed.",
  admin_password_link_created: "A link was made that sets the password of an operator once, within fifteen minutes.",
  admin_password_link_refused: [
    "A link to set a password was refused: it is unknown, used or expired, or it was opened on another machine.",
    "If no operator has tried the link, find out who uses the address in the record; `acme-svc admin user link NAME` makes another link.",
    "operate/operators.md"
  ],
  admin_operator_password_changed: "The password of an operator was changed.",
  admin_operator_totp_reset: "The second factor of an operator was removed.",
  admin_operator_session_revoked: "Sessions of another operator were ended.",
  admin_no_users: [
    "The panel is on, but there is no operator, so nobody can sign in.",
    "Create the first operator with `acme-svc admin user create NAME`.",
    "operate/operators.md"
  ],
  admin_mfa_enrolment_pending: [
    "`admin.require_mfa` is on, but some operators have no second factor yet.",
    "Ask them to sign in: the panel then asks them to set one up.",
    "operate/operators.md"
  ],
  admin_users_without_address: [
    "Operators should get mails about their accounts, but some operators have no mail address.",
    "Set the address with `acme-svc admin user contact NAME --contact ADDRESS`.",
    "configure/notifications.md"
  ],
  admin_authority_compromised: [
    "An operator has marked a CA as compromised, and all its certificates are being revoked.",
    "Follow the runbook, and give the profile another CA.",
    "operate/runbooks/ca-compromised.md"
  ],
  admin_campaign_started: "An operator has started a campaign, which asks clients to replace certificates.",
  admin_campaign_paused: "An operator has paused a campaign.",
  admin_campaign_resumed: "An operator has resumed a campaign.",
  admin_campaign_ended: "An operator has ended a campaign.",
  admin_campaign_confirmed: [
    "An operator has confirmed that a campaign, when its time has come, revokes the certificates that are not replaced by then.",
    "To prevent it, run `acme-svc campaign pause ID` or `acme-svc campaign end ID` before that time.",
    "configure/campaigns.md"
  ],
  admin_eab_created: "An operator has created a credential.",
  admin_eab_scope_changed: "An operator has changed what a credential may ask for.",
  admin_eab_revoked: "An operator has revoked a credential.",
  admin_eab_deleted: "An operator has deleted a credential.",
  admin_account_contact_updated: "An operator has changed the contacts of an account.",
  admin_account_deactivated: "An operator has deactivated an account.",
  admin_account_blocked: "An operator has blocked an account, which can order nothing until it is unblocked.",
  admin_account_unblocked: "An operator has unblocked an account.",
  admin_account_deleted: "An operator has deleted an account.",
  admin_order_revoked: "An operator has revoked a certificate.",
  admin_order_revoke_queued: "An operator has asked for a revocation, and a job asks the signer.",
  admin_order_deleted: "An operator has deleted an order.",
  admin_delete_refused: [
    "An operator wanted to delete an account, order or credential whose certificates can still be used.",
    "Revoke the certificates first with `acme-svc order revoke ORDER_ID`, or deactivate the account.",
    "operate/operators.md"
  ],
  admin_job_cancelled: "An operator has cancelled a job.",
  admin_job_advanced: "An operator has made a job due now.",
  admin_nonces_cleaned: "An operator has deleted old nonces.",
  admin_token_created: "An operator has created an API token.",
  admin_token_revoked: "An operator has revoked an API token.",
  admin_token_refused: [
    "An API token was refused for the reason in the record.",
    "`acme-svc admin token list` shows the tokens; make a new one with `acme-svc admin token create USER`.",
    "reference/api.md"
  ]
} as const satisfies SomeMeanings
