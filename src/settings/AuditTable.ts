import * as Schema from "effect/Schema"
import type { ReceiverName } from "../domain/ReceiverName.ts"
import { flag, integer, milliseconds, text, word } from "../engine/config/Key.ts"
import { form, hostPort, httpUrl, orEmpty, path } from "../engine/config/ValueForm.ts"

/* The keys of `[audit]`: what is stored with rows of the audit trail, how long, and to whom they are pushed. */

/** The facilities of syslog that fit records of a service, and their codes (RFC 5424 section 6.2.1). */
export const facilities = {
  user: 1,
  daemon: 3,
  auth: 4,
  authpriv: 10,
  audit: 13,
  local0: 16,
  local1: 17,
  local2: 18,
  local3: 19,
  local4: 20,
  local5: 21,
  local6: 22,
  local7: 23
} as const

const facilityWords = Object.keys(facilities) as ReadonlyArray<keyof typeof facilities>

const appName = form(
  "1 to 48 visible ASCII characters",
  (text) => /^[\x21-\x7e]{1,48}$/.test(text),
  "must have 1 to 48 visible ASCII characters"
)

const receiverUrl = form(
  "absolute http or https URL without fragment and user part",
  (text) => httpUrl.fault(text) === undefined && !text.includes("#") && !/^https?:\/\/[^/?]*@/.test(text),
  "must be an absolute http or https URL without fragment and user part; the token goes into token_path"
)

const attempt = "Time limit of one attempt, including the connection."

const syslog = Schema.Struct({
  address: text(
    "",
    orEmpty(hostPort),
    "Receiver of the rows of the audit trail, as syslog over TLS (RFC 5424, RFC 5425); the usual port is 6514. Empty: no rows are pushed by syslog."
  ),
  ca_path: text(
    "",
    orEmpty(path),
    "File with the CAs of the receiver's certificate, PEM, in addition to the public CAs."
  ),
  cert_path: text(
    "",
    orEmpty(path),
    "File with the certificate and chain that the service shows to the receiver, PEM. Empty: it shows none."
  ),
  key_path: text("", orEmpty(path), "File with the key of that certificate, PEM."),
  facility: word("audit", { offered: facilityWords }, "Facility of the messages."),
  app_name: text("acme-svc", appName, "APP-NAME of the messages."),
  enterprise_number: integer(
    32473,
    { min: 1, max: 4294967295 },
    "Private enterprise number in the name of the structured data, audit@NUMBER. The default is the number for examples (RFC 5612)."
  ),
  timeout_ms: milliseconds(10000, attempt)
})

const http = Schema.Struct({
  url: text(
    "",
    orEmpty(receiverUrl),
    "URL to which rows of the audit trail are sent with POST, one JSON object on each line. Empty: no rows are pushed by HTTP."
  ),
  token_path: text("", orEmpty(path), "File with the bearer token of these requests. Empty: they have none."),
  ca_path: text(
    "",
    orEmpty(path),
    "File with the CAs of the receiver's certificate, PEM, in addition to the public CAs."
  ),
  timeout_ms: milliseconds(10000, attempt)
})

/** The keys of `[audit]`. */
export const audit = Schema.Struct({
  reverse_dns: flag(true, "Store the reverse DNS name of the client's address with accounts, orders and audit rows."),
  reverse_dns_timeout_ms: milliseconds(
    2000,
    "Time limit of one such look-up. If a look-up fails, no name is stored, and no request is refused."
  ),
  retention_days: integer(
    0,
    { min: 0 },
    "A row of the audit trail is deleted after this many days, but not before every receiver has taken it. 0 keeps rows for ever."
  ),
  chain_key_path: text(
    "",
    orEmpty(path),
    "File with the key that signs the head of the audit chain each day: ECDSA P-256 or Ed25519, in PEM. A worker makes it if there is none. It must not be the key of a CA. Empty: heads are not signed."
  ),
  syslog,
  http
})

/** The part of a configuration that says where rows are pushed to. */
interface PushSettings {
  readonly syslog: { readonly address: string }
  readonly http: { readonly url: string }
}

/** Returns the receivers that a configuration names. */
export const receiversOf = ({ http, syslog }: PushSettings): ReadonlyArray<ReceiverName> => [
  ...syslog.address === "" ? [] : ["syslog" as const],
  ...http.url === "" ? [] : ["http" as const]
]
