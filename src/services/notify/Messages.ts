import { defaultKind } from "../../domain/CertificateKind.ts"
import { clientProgram } from "../../domain/ClientProgram.ts"
import type { MessageKind } from "../../domain/Notification.ts"
import { revocationReasons } from "../../domain/RevocationReason.ts"

/*
 * The built-in messages (docs/configure/notifications.md, "Messages"). They are templates in the same language that
 * operators use, so that a file can replace each of them.
 */

const days = "{{ one.days_remaining }} {% if one.days_remaining == 1 %}day{% else %}days{% endif %}"

const first = `{% for one in certificates %}{% if loop.first %}, first {{ names }} in ${days}{% endif %}{% endfor %}`

const counted = "{{ total }} {% if total == 1 %}certificate expires{% else %}certificates expire{% endif %}"

const sentences: { readonly [E in MessageKind]: string } = {
  profile_mounted: "[{{ profile }}] endpoint is being served",
  account_created: "[{{ profile }}] account {{ account_id }} created{% if client_ip %} from {{ client_ip }}{% endif %}",
  account_deactivated: "[{{ profile }}] account {{ account_id }} deactivated",
  account_blocked: "[{{ profile }}] account {{ account_id }} blocked: {{ block_reason }}",
  account_unblocked: "[{{ profile }}] account {{ account_id }} unblocked",
  certificate_issued: "[{{ profile }}] certificate issued for {{ names }}, valid until {{ not_after | date }}",
  certificate_revoked: "[{{ profile }}] certificate revoked for {{ names }} (reason: {{ reason_name }})",
  challenge_failed: "[{{ profile }}] {{ challenge_type }} failed for {{ identifier }}: {{ error }}",
  certificates_expiring:
    `[{{ profile }}] ${counted} within {{ lead_days }} days{% if superseded %}, {{ superseded }} of them replaced{% endif %}${first}`,
  authority_expiring:
    "[{{ profile }}] the CA {{ subject }} {% if not_after < at %}has ended{% elif days_remaining == 0 %}ends within a day{% elif days_remaining == 1 %}ends in 1 day{% else %}ends in {{ days_remaining }} days{% endif %}, at {{ not_after | date }}{% if chain_ends_with != subject %}, with {{ chain_ends_with }} above it{% endif %}",
  expiry_reminder:
    `{% if campaign_reason %}{{ total }} {% if total == 1 %}certificate has{% else %}certificates have{% endif %} to be replaced: {{ campaign_reason }}{% else %}${counted} soon${first}{% endif %}`,
  campaign_finished:
    "campaign {{ campaign_id }} has finished: {{ replaced }} of {{ matched }} certificates were replaced, {{ revoked }} revoked, {{ expired }} have expired",
  admin_sign_in:
    "operator {{ username }}: {% if outcome == \"succeeded_from_new_address\" %}signed in from a new address {{ client_ip }}{% elif outcome == \"locked_out\" %}sign-in locked{% elif outcome == \"step_up_failed\" %}wrong password in a session{% elif outcome == \"step_up_refused\" %}session ended after wrong passwords{% elif outcome == \"password_guessed\" %}{{ failures }} wrong passwords in a row{% else %}second factor refused{% endif %}",
  admin_credential_changed:
    "operator {{ username }}: {% if change == \"second_factor_enabled\" %}second factor enabled{% elif change == \"second_factor_disabled\" %}second factor disabled{% elif change == \"recovery_codes_regenerated\" %}recovery codes regenerated{% elif change == \"contact_address\" %}contact address changed{% else %}password changed{% endif %}{% if not by_self %} by another operator{% endif %}"
}

const labels: { readonly [member: string]: string } = {
  profile: "Profile",
  account_id: "Account",
  block_reason: "Reason of the block",
  order_id: "Order",
  authz_id: "Authorization",
  challenge_id: "Challenge",
  challenge_type: "Challenge type",
  identifier: "Name",
  error: "Error",
  cert_serial: "Serial",
  replaces: "Replaces",
  reason: "Reason",
  contact: "Contact",
  eab_kid: "Credential",
  identifiers: "Names",
  kind: "Kind",
  not_after: "Valid until",
  subject: "CA",
  issuer: "Key id",
  chain_ends_with: "First to end",
  campaign_id: "Campaign",
  campaign_reason: "Its reason",
  username: "Operator",
  outcome: "Outcome",
  change: "Change",
  failures: "Wrong passwords",
  previous_recipient: "Address before",
  recipient: "Address",
  client_ip: "Client",
  client_program: "Program"
}

const shown: { readonly [member: string]: string } = {
  contact: "{{ contact | join(\", \") }}",
  identifiers: "{{ identifiers | join(\", \") }}",
  not_after: "{{ not_after | date }}",
  reason: "{{ reason_name }}"
}

/** The members whose line has a condition of its own. Nearly all certificates have the kind `default`. */
const conditions: { readonly [member: string]: string } = { kind: `kind and kind != "${defaultKind}"` }

const lines = Object.entries(labels).map(([member, label]) =>
  `{% if ${conditions[member] ?? member} %}${label}: ${shown[member] ?? `{{ ${member} }}`}\n{% endif %}`
).join("")

const digest =
  `{% for one in certificates %}{{ one.not_after | date }} (${days}): {{ one.identifiers | join(", ") }}{% if one.superseded_by %}, followed by {{ one.superseded_by.cert_serial | default(one.superseded_by.order_id) }}{% endif %}\n  order {{ one.order_id }}, account {{ one.account_id }}{% if one.cert_serial %}, serial {{ one.cert_serial }}{% endif %}\n{% endfor %}`

const reminder =
  `{% if campaign_url %}{{ campaign_url }}\n\n{% endif %}{% for one in certificates %}{{ one.not_after | date }}: {{ one.identifiers | join(", ") }}\n{% endfor %}\nNo other certificate has replaced {% if total == 1 %}it{% else %}them{% endif %} so far. This address is a contact of the account\n{{ account_id }} at the endpoint {{ profile }}, which ordered {% if total == 1 %}it{% else %}them{% endif %}. A certificate that is renewed, replaced or\nrevoked is written about no more.\n`

const body = (event: MessageKind): string => {
  if (event === "expiry_reminder") return `{{ message }}\n\n${reminder}`
  const list = event === "certificates_expiring" ? `${digest}\n` : ""
  return `{{ message }}\n\n${list}${lines}Time: {{ at | date }}\nDelivery: {{ delivery_id }}\n`
}

/** Returns the names of the three templates of an event. */
export const namesOf = (event: MessageKind) => ({
  message: `webhook/${event}.j2`,
  subject: `email/${event}.subject.j2`,
  body: `email/${event}.body.j2`
})

/** Returns the built-in templates of an event, by name. */
export const builtIn = (event: MessageKind): ReadonlyArray<readonly [name: string, text: string]> => {
  const names = namesOf(event)
  return [
    [names.message, sentences[event]],
    [names.subject, "ACME Service {{ host }}: {{ message }}"],
    [names.body, body(event)]
  ]
}

const mostNames = 10

const namesText = (names: ReadonlyArray<string>): string =>
  names.length <= mostNames
    ? names.join(", ")
    : `${names.slice(0, mostNames).join(", ")} and ${names.length - mostNames} more`

/**
 * Returns the template variables that are not members of the event. They are computed here because the template
 * language cannot compute them.
 */
export const derived = (fields: { readonly [member: string]: unknown }) => {
  const { certificates, reason, user_agent: userAgent } = fields
  const soonest: unknown = Array.isArray(certificates) ? certificates[0] : fields
  const { identifiers } = soonest as { readonly identifiers?: unknown } ?? {}
  return {
    names: Array.isArray(identifiers) ? namesText(identifiers.map(String)) : "",
    reason_name: revocationReasons.find(({ code }) => code === reason)?.name ?? "unspecified",
    client_program: typeof userAgent === "string" ? clientProgram(userAgent) : ""
  }
}
