import { Effect, Exit, Scope } from "effect"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { text } from "node:stream/consumers"
import type { NotificationBackend, Payload } from "../../src/domain/Notification.ts"
import { notificationEvents } from "../../src/domain/Notification.ts"
import type { Taken } from "./MailServer.ts"
import { answering, mailServer } from "./MailServer.ts"

/*
 * Three real receivers: a web server, a mail server and a program. The web server and the mail server refuse the first
 * attempt of each sort of notification, so that there is a second one.
 */

/** An attempt as the receiver saw it. */
export interface Attempt {
  readonly backend: NotificationBackend
  /** `profiles` for `[notify]`, `operators` for `[admin.notify]`. */
  readonly section: "profiles" | "operators"
  readonly id: string
  readonly isRefused: boolean
  /** The event as it was received. A mail has none, because it has only a text. */
  readonly fields: Payload | undefined
  readonly mail: Taken | undefined
  /** The variables of a program. */
  readonly variables: Readonly<Record<string, string>>
}

/** Members of all events (docs/configure/notifications.md, "Events"). */
const members = [
  "hook",
  "profile",
  "at",
  "delivery_id",
  "account_id",
  "contact",
  "eab_kid",
  "client_ip",
  "order_id",
  "cert_serial",
  "identifiers",
  "kind",
  "not_after",
  "replaces",
  "reason",
  "block_reason",
  "authz_id",
  "challenge_id",
  "challenge_type",
  "identifier",
  "error",
  "generated_at",
  "lead_days",
  "total",
  "superseded",
  "certificates",
  "username",
  "recipient",
  "outcome",
  "change",
  "by_self",
  "previous_recipient",
  "failures",
  "admins",
  "user_agent",
  "issuer",
  "subject",
  "chain_ends_with",
  "days_remaining",
  "campaign_id",
  "campaign_reason",
  "matched",
  "replaced",
  "revoked",
  "expired"
] as const

/** The three receivers. */
export interface Inbox {
  /** The sections that name the receivers, one for all profiles and one for operators. */
  readonly toml: string
  /** Everything that has arrived so far, in no particular order. */
  readonly attempts: () => ReadonlyArray<Attempt>
  /** Calls `act` while the program is removed. */
  readonly withoutProgram: (act: () => Promise<void>) => Promise<void>
  readonly close: () => Promise<void>
}

const senders = { profiles: "ACME für alle <acme@example.org>", operators: "operators@bücher.example" } as const

/** The recipient of mail about profiles. */
export const everybody = "pki@example.org"

const bodyOf = `{${members.map((name) => `"${name}": {{ ${name} | tojson }}`).join(", ")}}`

const present = (fields: object): Payload =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null)) as Payload

/** Identifies the subject of a mail by two words, without names and ids. */
const sortOf = ({ mail: { subject = "" } }: Taken): string =>
  subject.replace(/^ACME Service \S+: (?:\[\S+\] |operator \S+: )?/, "").replaceAll(/[0-9a-f]{8}-\S+ /g, "")
    .split(" ", 2).join(" ")

const idOf = ({ mail: { messageId = "" } }: Taken): string => /^<([0-9a-f-]{36})@/.exec(messageId)?.[1] ?? messageId

// The environment and the input of each run are in a separate folder, which gets its final name when both are complete.
const script = (home: string): string =>
  `#!/bin/sh
set -eu
at=$(mktemp -d '${home}/began/XXXXXXXX')
cat > "$at/input"
env -0 > "$at/variables"
echo "$1" > "$at/section"
mv "$at" '${home}/told/'
`

const sectionOf = (
  name: "profiles" | "operators",
  { program, smtp, web }: { readonly web: number; readonly smtp: number; readonly program: string }
): string => {
  const at = name === "profiles" ? "notify" : "admin.notify"
  // An entry without `events` gets no notification about CAs that expire, and none about campaigns.
  const patience = `timeout_ms = 60000\nevents = ${JSON.stringify(notificationEvents)}`
  return `[${at}]
enabled = ["webhook", "email", "custom"]
webhook_enabled = ["${name}"]
custom_enabled = ["${name}"]
[${at}.webhook.${name}]
url = "http://127.0.0.1:${web}/${name}"
body = '${bodyOf}'
${patience}
[${at}.email]
smtp_host = "127.0.0.1"
smtp_port = ${smtp}
smtp_security = "none"
from = "${senders[name]}"
to = ["${everybody}"]
${patience}
[${at}.custom.${name}]
script_path = "${program}"
args = ["${name}"]
${patience}
`
}

/** Starts the receivers. */
export const startInbox = async (): Promise<Inbox> => {
  const home = mkdtempSync(join(tmpdir(), "acme-inbox-"))
  const [program, away] = [join(home, "program"), join(home, "away")]
  for (const folder of ["began", "told"]) mkdirSync(join(home, folder))
  writeFileSync(program, script(home), { mode: 0o755 })

  const arrived: Array<Attempt> = []
  const seen = new Set<string>()
  const isFirst = (sort: string): boolean => !seen.has(sort) && seen.add(sort).size > 0
  const web = createServer((request, response) => {
    void text(request).then((body) => {
      const fields = present(JSON.parse(body) as object)
      const section = request.url === "/operators" ? "operators" : "profiles"
      const isRefused = isFirst(`webhook ${fields.hook}`)
      arrived.push({
        backend: "webhook",
        section,
        id: fields.delivery_id,
        isRefused,
        fields,
        mail: undefined,
        variables: {}
      })
      response.writeHead(isRefused ? 503 : 204).end()
    })
  })
  web.listen(0, "127.0.0.1")
  await new Promise((done) => web.once("listening", done))
  const scope = await Effect.runPromise(Scope.make())
  const mail = await Effect.runPromise(Scope.provide(
    mailServer({ hideSMTPUTF8: true, hide8BITMIME: true }, (message) => {
      const section = message.mail.from?.text.includes("operators@") === true ? "operators" : "profiles"
      const isRefused = isFirst(`mail ${sortOf(message)}`)
      const [fields, variables] = [undefined, {}]
      arrived.push({ backend: "email", section, id: idOf(message), isRefused, fields, mail: message, variables })
      return isRefused ? answering(451, "not now") : undefined
    }),
    scope
  ))

  const ran = (): ReadonlyArray<Attempt> =>
    readdirSync(join(home, "told")).map((name) => {
      const read = (file: string) => readFileSync(join(home, "told", name, file), "utf8")
      const fields = JSON.parse(read("input")) as Payload
      const variables = Object.fromEntries(
        read("variables").split("\0").filter((line) => line.startsWith("ACME_")).map((line) => {
          const [variable = "", ...value] = line.split("=")
          return [variable, value.join("=")]
        })
      )
      const section = read("section").trim() === "operators" ? "operators" : "profiles"
      return {
        backend: "custom",
        section,
        id: fields.delivery_id,
        isRefused: false,
        fields,
        mail: undefined,
        variables
      }
    })
  const means = { web: (web.address() as AddressInfo).port, smtp: mail.port, program }
  return {
    toml: sectionOf("profiles", means) + sectionOf("operators", means),
    attempts: () => [...arrived, ...ran()],
    withoutProgram: async (act) => {
      renameSync(program, away)
      try {
        await act()
      } finally {
        renameSync(away, program)
      }
    },
    close: async () => {
      web.closeAllConnections()
      await new Promise((done) => web.close(done))
      await Effect.runPromise(Scope.close(scope, Exit.void))
      rmSync(home, { recursive: true, force: true, maxRetries: 3 })
    }
  }
}
