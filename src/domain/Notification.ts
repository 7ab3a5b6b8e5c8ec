/* The events that the service reports to receivers of notifications (docs/contribute/decisions/notifications.md). */

/** Events of a profile. */
export const profileEvents = [
  "profile_mounted",
  "account_created",
  "account_deactivated",
  "account_blocked",
  "account_unblocked",
  "certificate_issued",
  "certificate_revoked",
  "challenge_failed",
  "certificates_expiring",
  "authority_expiring"
] as const

/** Events about operators; the section `[admin.notify]` delivers them. */
const operatorEvents = ["admin_sign_in", "admin_credential_changed", "campaign_finished"] as const

/** Every event that a section may name. */
export const notificationEvents = [...profileEvents, ...operatorEvents] as const

/**
 * The events of an entry that names no events. These are the events of the first version; an entry must name a newer
 * event to receive it.
 */
export const usualEvents = notificationEvents.filter((event) =>
  event !== "account_blocked" && event !== "account_unblocked" && event !== "authority_expiring" &&
  event !== "campaign_finished"
)

export type NotificationEvent = (typeof notificationEvents)[number]

/**
 * The kind of mail that tells an account's contacts about its certificates. Entries cannot name it as one of their
 * events; `notify.expiry.to_contacts` turns it on.
 */
export const contactEvent = "expiry_reminder"

/** All kinds of messages. */
export const messageKinds = [...notificationEvents, contactEvent] as const

export type MessageKind = (typeof messageKinds)[number]

/** A section of notifications: a profile, or {@link operatorScope}. */
export type Scope = string

/** The scope of `[admin.notify]`. No profile has this name. */
export const operatorScope = "__admin__"

/** How an entry of a section delivers: by a webhook, by a script, or by the mail server, whose entry is `-`. */
export type NotificationBackend = "email" | "webhook" | "custom"

/** The name of the entry, if the backend has only one. */
export const onlyEntry = "-"

/** One certificate in a digest. */
export interface ExpiringCertificate {
  readonly order_id: string
  readonly account_id: string
  readonly cert_serial?: string | undefined
  readonly identifiers: ReadonlyArray<string>
  /** The kind of certificate. Absent in a job of an earlier version. */
  readonly kind?: string | undefined
  readonly not_after: number
  readonly days_remaining: number
  readonly superseded_by?: {
    readonly order_id: string
    readonly cert_serial?: string | undefined
    readonly not_after: number
    readonly via: "replaces" | "identifiers"
  } | undefined
}

interface Client {
  readonly client_ip?: string | undefined
}

interface OfOperator extends Client {
  readonly username: string
  /** The operator's own address, to which the mail is sent. */
  readonly recipient?: string | undefined
  readonly user_agent?: string | undefined
}

/**
 * The members of each event, in addition to `hook`, `profile`, `at` and `delivery_id`. A member without a value is left
 * out.
 */
export interface NotificationFields {
  readonly profile_mounted: object
  readonly account_created: Client & {
    readonly account_id: string
    readonly contact?: ReadonlyArray<string> | undefined
    readonly eab_kid?: string | undefined
  }
  readonly account_deactivated: Client & { readonly account_id: string }
  readonly account_blocked: Client & {
    readonly account_id: string
    /** The reason that the operator gave. */
    readonly block_reason: string
  }
  readonly account_unblocked: Client & { readonly account_id: string }
  readonly certificate_issued: Client & {
    readonly order_id: string
    readonly account_id: string
    readonly cert_serial: string
    readonly identifiers: ReadonlyArray<string>
    /** The kind of certificate. Absent in a job of an earlier version. */
    readonly kind?: string | undefined
    readonly not_after: number
    readonly replaces?: string | undefined
  }
  readonly certificate_revoked: Client & {
    readonly order_id: string
    readonly account_id: string
    readonly cert_serial?: string | undefined
    readonly identifiers: ReadonlyArray<string>
    /** The reason code of RFC 5280. */
    readonly reason?: number | undefined
  }
  readonly challenge_failed: Client & {
    readonly order_id: string
    readonly account_id: string
    readonly authz_id: string
    readonly challenge_id: string
    readonly challenge_type: string
    readonly identifier: string
    readonly error: string
  }
  readonly certificates_expiring: {
    readonly generated_at: number
    readonly lead_days: number
    /** The number of certificates that expire within these days. */
    readonly total: number
    /** How many of these certificates were replaced. */
    readonly superseded: number
    /**
     * The certificates that were not replaced come first, then the replaced ones. In each group, certificates that
     * expire sooner come first.
     */
    readonly certificates: ReadonlyArray<ExpiringCertificate>
  }
  readonly authority_expiring: {
    /** The SHA-256 of the CA's SubjectPublicKeyInfo, in hexadecimal. */
    readonly issuer: string
    readonly subject: string
    /** The subject of the certificate that expires first in the CA's chain. */
    readonly chain_ends_with: string
    readonly not_after: number
    readonly days_remaining: number
  }
  readonly expiry_reminder: {
    readonly account_id: string
    /** The contact to which the mail is sent. */
    readonly recipient?: string | undefined
    readonly total: number
    readonly certificates: ReadonlyArray<ExpiringCertificate>
    /** Why the certificates must be replaced, if a campaign says so, and the page that explains this. */
    readonly campaign_reason?: string | undefined
    readonly campaign_url?: string | undefined
  }
  readonly campaign_finished: {
    readonly campaign_id: string
    /** The reason that the operator gave for the campaign. */
    readonly campaign_reason: string
    /** How many certificates the campaign matched, and how they left it. */
    readonly matched: number
    readonly replaced: number
    readonly revoked: number
    readonly expired: number
  }
  readonly admin_sign_in: OfOperator & {
    readonly outcome:
      | "succeeded_from_new_address"
      | "second_factor_refused"
      | "step_up_failed"
      | "step_up_refused"
      | "password_guessed"
      | "locked_out"
    /** The number of wrong passwords in a row. */
    readonly failures?: number | undefined
    /** The addresses of the admins. The mail is also sent to them. */
    readonly admins?: ReadonlyArray<string> | undefined
  }
  readonly admin_credential_changed: OfOperator & {
    readonly change:
      | "password"
      | "second_factor_enabled"
      | "second_factor_disabled"
      | "recovery_codes_regenerated"
      | "contact_address"
    readonly by_self: boolean
    /** The operator's address before the change. The mail is sent to this address. */
    readonly previous_recipient?: string | undefined
  }
}

/** An event in a scope, with the members of the event. */
export type Occurrence = {
  readonly [E in NotificationEvent]: Told<E>
}[NotificationEvent]

/** A kind of message, with its members. */
export interface Told<E extends MessageKind> {
  readonly event: E
  readonly scope: Scope
  readonly fields: NotificationFields[E]
}

/**
 * An occurrence in the form in which it is delivered. The names of members are in snake_case, and members without a
 * value are left out.
 */
export interface Payload {
  readonly hook: string
  readonly profile: Scope
  /** The time of the occurrence, in epoch seconds. */
  readonly at: number
  /**
   * The id of the delivery. It is the same for every backend and every attempt, so that a receiver can drop repeated
   * deliveries.
   */
  readonly delivery_id: string
  readonly [member: string]: unknown
}

/** Returns the payload of an occurrence at an epoch second. */
export const payloadOf = (
  { event, fields, scope }: { readonly event: MessageKind; readonly scope: Scope; readonly fields: object },
  at: number,
  deliveryId: string
): Payload => ({
  hook: event,
  profile: scope,
  at,
  delivery_id: deliveryId,
  ...Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0))
  )
})

/**
 * Returns the only address to which a mail is sent: the address of the operator whom it concerns or, if that address
 * was changed, the previous address. Returns undefined if there is no such address; the mail is then sent to the
 * recipients of the section.
 */
const ownRecipientOf = (fields: { readonly [member: string]: unknown }): string | undefined => {
  const own = fields["change"] === "contact_address" ? fields["previous_recipient"] : fields["recipient"]
  return typeof own === "string" ? own : undefined
}

/**
 * The outcomes that are reported not only to the operator whom they concern, but also to the admins and to the
 * recipients of the section.
 */
const alarming: ReadonlyArray<unknown> = ["password_guessed", "step_up_refused"]

/**
 * Returns who receives a mail. `to` are the recipients of the section. A mail about an operator is sent to that
 * operator or, if the operator has no address, to `to`. A mail about an attempt to get into an operator's account is
 * sent to that operator, to the admins and to `to`.
 */
export const recipientsOf = (
  fields: { readonly [member: string]: unknown },
  to: ReadonlyArray<string>
): ReadonlyArray<string> => {
  const own = ownRecipientOf(fields)
  if (!alarming.includes(fields["outcome"])) return own === undefined ? to : [own]
  const { admins } = fields
  const all = [own ?? [], Array.isArray(admins) ? admins.map(String) : [], to].flat()
  return [...new Set(all)]
}
