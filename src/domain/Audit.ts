import type { CredentialScope } from "./CredentialScope.ts"
import type { OrderStatus } from "./Order.ts"

/** Every kind of actor. */
export const actorKinds = ["acme", "admin", "cli", "system"] as const

/**
 * Who caused a row: a client, an operator in the panel or over the API, an operator at the command line, or the service
 * itself.
 */
export type ActorKind = (typeof actorKinds)[number]

/** The two outcomes of an action. */
export const auditOutcomes = ["success", "failure"] as const

/** Whether the action succeeded. */
export type AuditOutcome = (typeof auditOutcomes)[number]

/**
 * The vocabulary of the audit trail, with one definition for each event (docs/contribute/decisions/audit-rows.md). The
 * event determines the outcome.
 */
const vocabulary = {
  certificate_issued: { outcome: "success", actors: ["acme"] },
  certificate_issue_failed: { outcome: "failure", actors: ["acme", "admin", "cli", "system"] },
  account_contact_updated: { outcome: "success", actors: ["acme", "admin", "cli"] },
  account_key_changed: { outcome: "success", actors: ["acme"] },
  account_deactivated: { outcome: "success", actors: ["acme", "admin", "cli"] },
  account_blocked: { outcome: "success", actors: ["admin", "cli"] },
  account_unblocked: { outcome: "success", actors: ["admin", "cli"] },
  account_deleted: { outcome: "success", actors: ["admin", "cli"] },
  order_deleted: { outcome: "success", actors: ["admin", "cli"] },
  orders_purged: { outcome: "success", actors: ["cli"] },
  certificate_revoked: { outcome: "success", actors: ["acme", "admin", "cli"] },
  certificate_revoke_failed: { outcome: "failure", actors: ["acme", "admin", "cli"] },
  certificate_orphaned: { outcome: "failure", actors: ["system"] },
  certificate_orphan_revoked: { outcome: "success", actors: ["system"] },
  certificate_orphan_kept: { outcome: "failure", actors: ["admin", "cli", "system"] },
  revocation_restored: { outcome: "success", actors: ["cli", "system"] },
  job_cancelled: { outcome: "success", actors: ["admin", "cli"] },
  job_advanced: { outcome: "success", actors: ["admin", "cli"] },
  nonce_cleanup_completed: { outcome: "success", actors: ["admin", "cli"] },
  audit_pruned: { outcome: "success", actors: ["cli", "system"] },
  campaign_started: { outcome: "success", actors: ["admin", "cli"] },
  campaign_paused: { outcome: "success", actors: ["admin", "cli"] },
  campaign_resumed: { outcome: "success", actors: ["admin", "cli"] },
  campaign_ended: { outcome: "success", actors: ["admin", "cli"] },
  campaign_revocation_confirmed: { outcome: "success", actors: ["admin", "cli"] },
  campaign_finished: { outcome: "success", actors: ["system"] },
  crl_number_raised: { outcome: "success", actors: ["cli"] },
  authority_compromised: { outcome: "success", actors: ["admin", "cli"] },
  upstream_key_changed: { outcome: "success", actors: ["cli"] },
  upstream_contact_updated: { outcome: "success", actors: ["cli"] },
  eab_created: { outcome: "success", actors: ["admin", "cli"] },
  eab_scope_changed: { outcome: "success", actors: ["admin", "cli"] },
  eab_revoked: { outcome: "success", actors: ["admin", "cli"] },
  eab_deleted: { outcome: "success", actors: ["admin", "cli"] },
  operator_created: { outcome: "success", actors: ["cli"] },
  operator_deleted: { outcome: "success", actors: ["cli"] },
  operator_role_changed: { outcome: "success", actors: ["admin", "cli"] },
  operator_contact_updated: { outcome: "success", actors: ["admin", "cli"] },
  operator_password_changed: { outcome: "success", actors: ["admin", "cli"] },
  operator_password_link_created: { outcome: "success", actors: ["cli"] },
  operator_disabled: { outcome: "success", actors: ["admin", "cli"] },
  operator_enabled: { outcome: "success", actors: ["admin", "cli"] },
  operator_totp_enrolled: { outcome: "success", actors: ["admin", "cli"] },
  operator_totp_disabled: { outcome: "success", actors: ["admin", "cli"] },
  operator_recovery_codes_regenerated: { outcome: "success", actors: ["admin", "cli"] },
  session_revoked: { outcome: "success", actors: ["admin", "cli"] },
  token_created: { outcome: "success", actors: ["admin", "cli"] },
  token_revoked: { outcome: "success", actors: ["admin", "cli"] },
  notifications_tested: { outcome: "success", actors: ["admin", "cli"] },
  database_transferred: { outcome: "success", actors: ["cli"] },
  changes_lost: { outcome: "failure", actors: ["system"] }
} as const satisfies {
  readonly [event: string]: {
    readonly outcome: AuditOutcome
    readonly actors: ReadonlyArray<ActorKind>
  }
}

export type AuditEvent = keyof typeof vocabulary

/** All events of the audit trail. */
export const auditEvents = Object.keys(vocabulary) as ReadonlyArray<AuditEvent>

/** Why an issuance failed, in one word. */
export type IssueFailureCause =
  | "bad_csr"
  | "filter_denied"
  | "filter_undecided"
  | "authority_withdrawn"
  | "kind_removed"
  | "issuer_compromised"
  | "credential_denied"
  | "attempts_exhausted"
  | "cancelled"
  | "order_expired"
  | "chain_rejected"
  | "lint_failed"
  | "script_failed"
  | "upstream_refused"
  | "poll_timeout"

/** Why a revocation failed, in one word. */
export type RevokeFailureCause =
  | "unauthorized"
  | "already_revoked"
  | "bad_reason"
  | "issuer_mismatch"
  | "list_stopped"
  | "cancelled"
  | "script_failed"
  | "upstream_refused"
  | "signer_failed"

/** What happens to the accounts of a deleted credential. */
export type AccountsMode = "keep" | "deactivate" | "delete"

/** `scope` is a profile. It is absent for a credential that every profile accepts. */
interface EabDetail {
  readonly kid: string
  readonly label?: string
  readonly scope?: string
}

/** What a credential may ask for. A member that restricts nothing is absent. */
type ScopeDetail = { readonly [M in keyof CredentialScope]?: NonNullable<CredentialScope[M]> }

/** `subject` is the dedup key of the job: the order, challenge, issuer or profile that the job is about. */
interface JobDetail {
  readonly kind: string
  readonly job_id: string
  readonly subject: string
}

interface CampaignDetail {
  readonly campaign_id: string
}

/** The name of the operator whom the action concerned. */
interface TargetDetail {
  readonly target: string
}

/** The operator whom the action concerned, and how many sessions of this operator the action ended. */
interface EndingDetail extends TargetDetail {
  readonly sessions_revoked: number
}

/** An API token. `target` is its owner, and `name` says what the token is for. */
interface TokenDetail extends TargetDetail {
  readonly name: string
  readonly role: string
  readonly expires_at: string
}

/**
 * A change of contacts: the number of contacts before and after the change, and the first ten contacts that were
 * removed and added. These contacts are evidence if somebody redirects an account's mail.
 */
interface ContactChange {
  readonly contacts_before: number
  readonly contacts_after: number
  readonly removed: ReadonlyArray<string>
  readonly added: ReadonlyArray<string>
}

interface Details {
  /** `proved_by` says what made the authorizations valid, if no challenge did. */
  readonly certificate_issued: {
    readonly key_type: string
    readonly not_after: string
    readonly kind?: string
    readonly proved_by?: "credential"
  }
  /** `rule` is the filter rule that decided. It is absent if the default decided. */
  readonly certificate_issue_failed: {
    readonly cause: IssueFailureCause
    readonly error?: string
    readonly rule?: string
  }
  readonly account_contact_updated: ContactChange
  readonly account_key_changed: { readonly key_fp: string; readonly previous_key_fp: string }
  readonly account_deactivated: { readonly via: "account" | "eab_delete" }
  /** The reason that the operator gave, in both events. `blocked_at` is when the block began. */
  readonly account_blocked: { readonly reason: string }
  readonly account_unblocked: { readonly reason: string; readonly blocked_at: string }
  readonly account_deleted: {
    readonly orders: number
    readonly authorizations: number
    readonly via: "account" | "eab_delete"
  }
  readonly certificate_revoked: { readonly authorized_by: "account" | "certificate_key" | "operator" }
  readonly certificate_revoke_failed: { readonly cause?: RevokeFailureCause; readonly error?: string }
  /**
   * A signer issued a certificate that was not stored in its order, because the order had ended or the chain was
   * refused.
   */
  readonly certificate_orphaned: {
    readonly cause: "order_ended" | "chain_rejected" | "signer_failed"
    readonly not_after: string
  }
  readonly certificate_orphan_revoked: {}
  readonly certificate_orphan_kept: { readonly error: string }
  /**
   * The database lacked a revocation that a list of the CA contains. The detail has the number and the file of the
   * list, and the date of the revocation in the list.
   */
  readonly revocation_restored: {
    readonly issuer: string
    readonly crl_number: number
    readonly path: string
    readonly revoked_at: string
  }
  readonly job_cancelled: JobDetail
  readonly job_advanced: JobDetail
  readonly order_deleted: { readonly authorizations: number; readonly status: OrderStatus }
  readonly orders_purged: {
    readonly cutoff: string
    readonly profile?: string
    readonly orders: number
    readonly authorizations: number
  }
  readonly nonce_cleanup_completed: { readonly removed: number }
  readonly audit_pruned: { readonly cutoff: string; readonly removed: number }
  readonly authority_compromised: { readonly issuer: string }
  /** The filter has its members in snake_case, with the number of its serials instead of the serials. */
  readonly campaign_started: CampaignDetail & {
    readonly text: string
    readonly filter: { readonly [member: string]: string | number }
    readonly revoke_at?: string
  }
  readonly campaign_paused: CampaignDetail
  readonly campaign_resumed: CampaignDetail
  readonly campaign_ended: CampaignDetail
  readonly campaign_revocation_confirmed: CampaignDetail & { readonly revoke_at: string }
  readonly campaign_finished: CampaignDetail & {
    readonly matched: number
    readonly replaced: number
    readonly revoked: number
    readonly expired: number
  }
  readonly crl_number_raised: { readonly issuer: string; readonly before: number; readonly after: number }
  readonly upstream_key_changed: {
    readonly account_url: string
    readonly key_fp: string
    readonly previous_key_fp: string
  }
  readonly upstream_contact_updated: {
    readonly account_url: string
    readonly contacts: number
    readonly added: ReadonlyArray<string>
  }
  /** `external_kid` is the identifier that another server gave to the credential. */
  readonly eab_created: EabDetail & { readonly after?: ScopeDetail; readonly external_kid?: string }
  readonly eab_scope_changed: EabDetail & { readonly before: ScopeDetail; readonly after: ScopeDetail }
  readonly eab_revoked: EabDetail
  readonly eab_deleted: {
    readonly kid: string
    readonly label?: string
    readonly accounts: AccountsMode
    readonly kept: number
    readonly deactivated: number
    readonly deleted: number
  }
  readonly operator_created: TargetDetail & { readonly role: string }
  readonly operator_deleted: EndingDetail & { readonly role: string }
  readonly operator_role_changed: EndingDetail & { readonly before: string; readonly after: string }
  readonly operator_contact_updated: TargetDetail
  /** `via` says that the operator used a link for it. */
  readonly operator_password_changed: EndingDetail & { readonly via?: "link" }
  readonly operator_password_link_created: TargetDetail
  readonly operator_disabled: EndingDetail
  readonly operator_enabled: TargetDetail
  readonly operator_totp_enrolled: EndingDetail
  readonly operator_totp_disabled: EndingDetail
  readonly operator_recovery_codes_regenerated: TargetDetail
  /** `target` is absent if the sessions of all operators were ended. */
  readonly session_revoked: {
    readonly target?: string
    readonly scope: "one" | "operator" | "all"
    readonly sessions: number
  }
  readonly token_created: TokenDetail
  readonly token_revoked: TokenDetail
  /** How many samples were delivered, and how many failed. `target` is the target that the operator named. */
  readonly notifications_tested: { readonly target?: string; readonly delivered: number; readonly failed: number }
  readonly database_transferred: { readonly tables: number; readonly rows: number }
  /**
   * The database lacks changes that a process committed after `since`. The detail has the number of changes of each
   * kind, and the first ids that the changes concern.
   */
  readonly changes_lost: {
    readonly changes: number
    readonly since: string
    readonly counts: Readonly<Record<string, number>>
    readonly accounts: ReadonlyArray<string>
    readonly orders: ReadonlyArray<string>
    readonly serials: ReadonlyArray<string>
  }
}

/** A row to be written. Unknown facts are left out. `reason` is a problem type or a reason code. */
export interface AuditRow<E extends AuditEvent = AuditEvent> {
  readonly event: E
  readonly actorKind: (typeof vocabulary)[E]["actors"][number]
  readonly actorId?: string | undefined
  readonly profile?: string | undefined
  readonly accountId?: string | undefined
  readonly orderId?: string | undefined
  readonly certSerial?: string | undefined
  readonly identifiers?: ReadonlyArray<string> | undefined
  readonly clientIp?: string | undefined
  readonly clientPtr?: string | undefined
  readonly userAgent?: string | undefined
  readonly requestId?: string | undefined
  readonly reason?: string | undefined
  /** The name of the API token that an operator's program used. The name is added to the detail. */
  readonly token?: string | undefined
  readonly detail: Details[E]
}

const mostContacts = 10

/** Returns the first contacts of a list, as many as a row stores. */
export const shownContacts = (contacts: ReadonlyArray<string>): ReadonlyArray<string> => contacts.slice(0, mostContacts)

/** Returns the detail of a change of contacts. */
export const contactChange = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ContactChange => ({
  contacts_before: before.length,
  contacts_after: after.length,
  removed: shownContacts(before.filter((one) => !after.includes(one))),
  added: shownContacts(after.filter((one) => !before.includes(one)))
})

/** Returns the outcome of an event, from the vocabulary above. */
export const outcomeOf = (event: AuditEvent): AuditOutcome => vocabulary[event].outcome

const maxIdentifiers = 100
const maxUserAgent = 256
const maxPtr = 253
const maxRequestId = 128

/**
 * Shortens values to the limits of their columns: 100 names, 256 characters of a User-Agent, 128 characters of a
 * request id.
 */
export const bounded = (row: AuditRow): AuditRow => ({
  ...row,
  identifiers: row.identifiers?.slice(0, maxIdentifiers),
  userAgent: row.userAgent?.slice(0, maxUserAgent),
  clientPtr: row.clientPtr?.slice(0, maxPtr),
  requestId: row.requestId?.slice(0, maxRequestId)
})
