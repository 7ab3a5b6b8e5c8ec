import * as Redacted from "effect/Redacted"
import { comparable, makeAddressSet } from "../engine/net/Address.ts"
import { outsideSubset } from "../engine/template/Subset.ts"
import type { Config } from "./AppConfig.ts"
import type { Finding, Subject } from "./Finding.ts"

/* The rules for `[notify]` and `[admin.notify]`. */

type Section = Config["notify"] | Config["admin"]["notify"]

/** A section, and the full name of its key. */
interface Scope {
  readonly section: Section
  readonly at: (key: string) => string
  /** Whether recipients may be missing, because operators receive mail at their own addresses. */
  readonly ownRecipients: boolean
}

const isLoopback = makeAddressSet(["127.0.0.0/8", "::1/128"])

const isHere = (host: string): boolean => {
  const address = comparable(host)
  return address === undefined ? host === "localhost" : isLoopback(address)
}

const lists = [
  ["webhook", "webhook_enabled", "webhook"],
  ["custom", "custom_enabled", "custom"]
] as const

/**
 * Checks the lists of entries. A list must not be empty while its backend is on, and must not contain repeated or
 * unknown entries.
 */
const listed = ({ at, section }: Scope): ReadonlyArray<Finding> =>
  lists.flatMap(([backend, list, table]) => {
    const named = section[list]
    const known: object = section[table]
    const key = at(list)
    const say = (message: string): Finding => ({ key, message, involves: [key, at("enabled")] })
    const prefix = key.slice(0, -list.length)
    const missing = named.filter((name) => !Object.hasOwn(known, name))
    return [
      ...section.enabled.includes(backend) && named.length === 0
        ? [say(`must not be empty while ${at("enabled")} has "${backend}"`)]
        : [],
      ...new Set(named).size < named.length ? [say("must not name the same entry twice")] : [],
      ...missing.map((name) => say(`names ${name}, but there is no [${prefix}${table}.${name}]`))
    ]
  })

const required = ({ at, section }: Scope): ReadonlyArray<Finding> => [
  ...section.webhook_enabled.flatMap((name) => {
    const entry = section.webhook[name]
    const key = at(`webhook.${name}.url`)
    return entry === undefined || Redacted.value(entry.url) !== ""
      ? []
      : [{ key, message: `must be set while ${at("webhook_enabled")} names ${name}`, involves: [key] }]
  }),
  ...section.custom_enabled.flatMap((name) => {
    const entry = section.custom[name]
    const key = at(`custom.${name}.script_path`)
    return entry === undefined || entry.script_path !== ""
      ? []
      : [{ key, message: `must be set while ${at("custom_enabled")} names ${name}`, involves: [key] }]
  })
]

const mail = ({ at, ownRecipients, section: { email, enabled } }: Scope): ReadonlyArray<Finding> => {
  const isOn = enabled.includes("email")
  const needs = (name: string, isEmpty: boolean): ReadonlyArray<Finding> => {
    const key = at(`email.${name}`)
    return isOn && isEmpty
      ? [{ key, message: `must not be empty while ${at("enabled")} has "email"`, involves: [key, at("enabled")] }]
      : []
  }
  const [username, password] = [at("email.smtp_username"), at("email.smtp_password")]
  const hasPassword = Redacted.value(email.smtp_password) !== ""
  const [alone, other] = hasPassword ? [password, username] : [username, password]
  const security = at("email.smtp_security")
  return [
    ...needs("smtp_host", email.smtp_host === ""),
    ...needs("from", email.from === ""),
    ...needs("to", email.to.length === 0 && !ownRecipients),
    ...hasPassword === (email.smtp_username !== "")
      ? []
      : [{ key: other, message: `must be set as well while ${alone} is`, involves: [username, password] }],
    ...hasPassword && email.smtp_security === "none" && !isHere(email.smtp_host)
      ? [{
        key: security,
        message: "must not be none with a password, unless the mail server is on this host",
        involves: [security, password, at("email.smtp_host")]
      }]
      : []
  ]
}

const bodies = ({ at, section }: Scope): ReadonlyArray<Finding> =>
  Object.entries(section.webhook).flatMap(([name, { body }]) => {
    const key = at(`webhook.${name}.body`)
    const text = Redacted.value(body)
    if (text.trim() === "") {
      return [{ key, message: "must not be blank: a receiver would be told nothing", involves: [key] }]
    }
    const found = outsideSubset(key, text)
    return found === undefined
      ? []
      : [{ key, message: `does not compile: line ${found.line}: ${found.fault}`, involves: [key] }]
  })

/** Checks that mail to contacts can be sent: there must be a mail server, and a number of days before the expiry. */
const expiry = (
  { enabled, expiry: { lead_days, to_contacts } }: Config["notify"],
  at: (key: string) => string
): ReadonlyArray<Finding> => {
  const key = at("expiry.to_contacts")
  const [lead, backends] = [at("expiry.lead_days"), at("enabled")]
  if (!to_contacts) return []
  return [
    ...enabled.includes("email")
      ? []
      : [{ key, message: `must not be true unless ${backends} has "email"`, involves: [key, backends] }],
    ...lead_days > 0
      ? []
      : [{ key: lead, message: `must be at least 1 while ${key} is true`, involves: [key, lead] }]
  ]
}

/** Returns every fault of the sections, even faults of entries that are not used. */
export const notifyFindings = ({ config, written }: Subject): ReadonlyArray<Finding> => {
  const scopes: ReadonlyArray<Scope> = [
    ...config.profiles.map(({ name, notify }) => ({
      section: notify,
      at: (key: string) => written(`profiles.${name}.notify.${key}`),
      ownRecipients: false
    })),
    { section: config.admin.notify, at: (key) => written(`admin.notify.${key}`), ownRecipients: true }
  ]
  return [
    ...scopes.flatMap((scope) => [listed, required, mail, bodies].flatMap((rule) => rule(scope))),
    ...config.profiles.flatMap(({ name, notify }) => expiry(notify, (key) => written(`profiles.${name}.notify.${key}`)))
  ]
}
