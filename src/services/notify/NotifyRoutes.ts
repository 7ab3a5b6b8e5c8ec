import type { NotificationBackend, NotificationEvent, Scope } from "../../domain/Notification.ts"
import { onlyEntry, operatorScope, profileEvents } from "../../domain/Notification.ts"
import type { Config } from "../../settings/AppConfig.ts"

/** A section of notifications, either of a profile or of the operators. */
export type Section = Config["admin"]["notify"]

/** A configured receiver of notifications, with the events that are sent to it. */
export interface Route {
  readonly backend: NotificationBackend
  readonly entry: string
  readonly events: ReadonlySet<NotificationEvent>
}

/**
 * Returns the sections in force: the sections of all served profiles, and the operators' section while the operators'
 * listener is on.
 */
export const sectionsOf = ({ admin, profiles }: Pick<Config, "admin" | "profiles">): ReadonlyMap<Scope, Section> =>
  new Map([
    ...profiles.flatMap(({ enabled, name, notify }) => enabled ? [[name, notify] as const] : []),
    ...admin.enabled ? [[operatorScope, admin.notify] as const] : []
  ])

/** Returns the entries of a section that are in use, in the order of its lists. */
export const routesOf = (section: Section): ReadonlyArray<Route> =>
  section.enabled.flatMap((backend): ReadonlyArray<Route> => {
    if (backend === "email") return [{ backend, entry: onlyEntry, events: new Set(section.email.events) }]
    const [names, table] = backend === "webhook"
      ? [section.webhook_enabled, section.webhook]
      : [section.custom_enabled, section.custom]
    return names.map((entry) => ({ backend, entry, events: new Set(table[entry]?.events) }))
  })

/** Returns whether any entry of a section receives the digest of certificates that expire soon. */
export const hasDigest = (section: Section & Pick<Config["notify"], "expiry">): boolean =>
  section.expiry.lead_days > 0 && routesOf(section).some(({ events }) => events.has("certificates_expiring"))

/**
 * Returns whether mails about certificates that expire soon are sent to the contacts of accounts. A configuration that
 * asks for these mails but has no mail server or no time for them is refused.
 */
export const hasReminders = ({ expiry }: Pick<Config["notify"], "expiry">): boolean => expiry.to_contacts

const ofProfiles: ReadonlySet<NotificationEvent> = new Set(profileEvents)

/**
 * Returns whether an event belongs to a scope. Operator events never come from a profile, and profile events never come
 * from the operators' section.
 */
export const isOfScope = (event: NotificationEvent, scope: Scope): boolean =>
  ofProfiles.has(event) === (scope !== operatorScope)
