import * as Schema from "effect/Schema"
import { isMailAddress } from "../domain/Account.ts"
import { notificationEvents, usualEvents } from "../domain/Notification.ts"
import type { Names } from "../engine/config/Key.ts"
import {
  entries,
  flag,
  integer,
  milliseconds,
  port,
  secret,
  secrets,
  someWords,
  text,
  texts,
  word
} from "../engine/config/Key.ts"
import { anyText, form, headerName, orEmpty, path } from "../engine/config/ValueForm.ts"
import { hiddenIn } from "../engine/HiddenText.ts"

/** The sections about notifications. docs/configure/notifications.md explains how their keys work together. */

const pattern = /^[a-z0-9-]+$/

const entryName = form("names", (text) => pattern.test(text), "must be a name: lower-case letters, digits and hyphens")

const receiver = form(
  "absolute http or https URL without user part",
  (text) =>
    !/[\s\p{Cc}]/u.test(text) && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
    && new URL(text).username === "" && new URL(text).password === "",
  "must be an absolute http or https URL without user part; credentials go into headers"
)

const method = form(
  "`POST`, `PUT` or `PATCH`",
  (text) => /^(?:post|put|patch)$/i.test(text),
  "must be POST, PUT or PATCH"
)

const headerValue = form(
  "text without control characters",
  (text) => /^[\t\x20-\x7e\x80-\xff]*$/.test(text),
  "must be characters of ISO 8859-1 without control characters"
)

const hostName = form(
  "name or address of a host",
  (text) => /^[A-Za-z0-9._:-]+$/.test(text),
  "must be the name or the address of a host, without a port"
)

const longestAddress = 254

const addressOf = (text: string): string => /^[^<>,\p{Cc}]*<([^<>]*)>$/u.exec(text)?.[1] ?? text

const mailbox = form(
  "mail address, or `Name <address>`",
  (text) => isMailAddress(addressOf(text)) && addressOf(text).length <= longestAddress && hiddenIn(text) === undefined,
  "must be one mail address, alone or as Name <address>"
)

const [leastKey, mostKey] = [24, 64]

const signingKey = form(
  "base64 of 24 to 64 octets, with or without `whsec_` before it",
  (text) => {
    const octets = Buffer.from(text.replace(/^whsec_/, ""), "base64")
    return octets.length >= leastKey && octets.length <= mostKey
      && octets.toString("base64") === text.replace(/^whsec_/, "")
  },
  "must be base64 of 24 to 64 octets, with or without whsec_ before it"
)

const names: Names = {
  fold: (segment) => segment.toLowerCase().replaceAll("_", "-"),
  fault: (name) =>
    pattern.test(name) ? undefined : "cannot name an entry: a name has lower-case letters, digits and hyphens"
}

const headerNames: Names = {
  fold: (segment) => segment.toLowerCase(),
  fault: (name) => {
    if (headerName.fault(name) !== undefined) return "is not the name of a header"
    return ["connection", "content-length", "host", "transfer-encoding"].includes(name.toLowerCase())
      ? "is a header that belongs to the connection and cannot be set"
      : undefined
  }
}

/** The default body of a webhook, which most chat services can read. */
const textBody = `{"text": {{ message | tojson }}}`

const events = someWords(
  notificationEvents,
  "Events that are delivered. With an empty list, no events are delivered.",
  usualEvents
)

const webhook = Schema.Struct({
  url: secret("", orEmpty(receiver), "URL of the receiver. Required for an entry that is enabled."),
  method: text("POST", method, "Method of the request."),
  body: secret(
    textBody,
    anyText,
    "Template of the body. Its variables are message, hook and every member of the event."
  ),
  events,
  timeout_ms: milliseconds(5000, "Time limit of one attempt, including the connection."),
  signing_key: secret(
    "",
    orEmpty(signingKey),
    "Signs each request as Standard Webhooks describes. Empty: requests are not signed."
  ),
  headers: entries(headerNames, secret("", headerValue, "A header of the request, by its name."))
})

const custom = Schema.Struct({
  script_path: text("", orEmpty(path), "Program to run. Required for an entry that is enabled."),
  args: secrets([], anyText, "Arguments of the program."),
  events,
  timeout_ms: milliseconds(
    5000,
    "Time limit of one run. After that, the service kills the process group of the program."
  ),
  retry: flag(
    false,
    "Run the program again if it failed for an event: by its exit code, by a signal or at its timeout_ms."
  )
})

const email = Schema.Struct({
  smtp_host: text("", orEmpty(hostName), "Name or address of the mail server. Required with email."),
  smtp_port: port(587, "Port of the mail server."),
  smtp_security: word(
    "starttls",
    { offered: ["starttls", "tls", "none"] },
    "With starttls and tls, no mail is sent without TLS. The certificate of the server is always verified."
  ),
  smtp_username: text("", anyText, "User name at the mail server. Empty: the service does not sign in."),
  smtp_password: secret("", anyText, "Password at the mail server."),
  from: text("", orEmpty(mailbox), "Sender: an address, or Name <address>. Required with email."),
  to: texts([], mailbox, "Recipients. Required with email."),
  events,
  timeout_ms: milliseconds(
    5000,
    "Time limit of one attempt, until the message is sent. The server then has ten minutes to accept it."
  )
})

const common = {
  enabled: someWords(
    ["email", "webhook", "custom"],
    "Backends that deliver notifications. Empty: the service sends no notifications."
  ),
  webhook_enabled: texts([], entryName, "Names of the webhooks in use, in this order."),
  custom_enabled: texts([], entryName, "Names of the scripts in use, in this order."),
  template_dir: text("", orEmpty(path), "Folder whose files replace message templates of the same name."),
  email,
  webhook: entries(names, webhook),
  custom: entries(names, custom)
}

/** The keys of `[admin.notify]`. */
export const adminNotify = Schema.Struct(common)

const expiry = Schema.Struct({
  lead_days: integer(
    0,
    { min: 0, max: 3650 },
    "The digest lists certificates that expire within this many days (event certificates_expiring). 0: there is no digest."
  ),
  interval_days: integer(7, { min: 1, max: 365 }, "Days from one digest to the next."),
  max_entries: integer(
    50,
    { min: 1, max: 1000 },
    "Highest number of certificates that one digest lists. Its total counts all certificates."
  ),
  to_contacts: flag(
    false,
    "Also write to the mail contacts of the account, at most once a week about a certificate. The backend email must be enabled."
  )
})

/** The keys of `[notify]`. */
export const notify = Schema.Struct({ ...common, expiry })
