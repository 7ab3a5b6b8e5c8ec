import { it } from "@effect/vitest"
import { Effect } from "effect"
import { assert, describe } from "vitest"
import { messageKinds } from "../../../src/domain/Notification.ts"
import type { MessageKind } from "../../../src/domain/Notification.ts"
import { isFull } from "../../support/Full.ts"
import { letterFaults } from "../../support/Letters.ts"
import { mailServer } from "../../support/MailServer.ts"
import { deliver, deliveries, deliveryId, payload } from "../../support/Notified.ts"

/*
 * Every mail must be acceptable to each server and each mail program, whatever its contents and whatever the server
 * supports.
 */

const toml = (port: number, to: string) => {
  const section = (at: string) =>
    `[${at}]
enabled = ["email"]
[${at}.email]
smtp_host = "localhost"
smtp_port = ${port}
smtp_security = "none"
from = "Zoë \\"Büro\\" (4) <acme@bücher.example>"
to = ["${to}", "Łódź; Büro: 2 <two@пример.example>"]
timeout_ms = 60000
`
  return `${section("notify")}[admin]\nenabled = true\n${section("admin.notify")}`
}

/** Unusual texts from clients, labels and errors, each in every member that is a text. */
const contents: { readonly [name: string]: string } = {
  "line breaks and headers": "x\r\nBcc: evil@example.org\r\nContent-Type: text/html\r\n\r\n<b>.\r\n.\r\nQUIT\r\n",
  "bare CR, LF and NUL": "a\rb\nc\u0000d\u0007\u001b[2J\u0085\u2028e",
  "quotes and markup": "\"' \\ <a@b> =?UTF-8?Q?=0D=0ABcc:_x?= {{ profile }} {% if %} &amp;,;:()",
  "other scripts": "Zoë Łódź пример 例え 😀 e\u0301",
  "half a character": "\ud83d x \udc00",
  "10,000 characters": "y".repeat(10_000),
  "10,000 that are not ASCII": "ł".repeat(10_000),
  "spaces and dots": `. ..\t  ${" ".repeat(300)}\n.\n..\nFrom me \t`
}

const certificate = (text: string) => ({
  order_id: text,
  account_id: text,
  cert_serial: text,
  identifiers: [text, text],
  not_after: 1_927_947_906,
  days_remaining: 3,
  superseded_by: { order_id: text, cert_serial: text, not_after: 1_927_947_907, via: "replaces" }
})

const membersOf = (kind: MessageKind, text: string) => ({
  ...Object.fromEntries(
    [
      "account_id",
      "order_id",
      "authz_id",
      "challenge_id",
      "challenge_type",
      "identifier",
      "error",
      "cert_serial",
      "replaces",
      "eab_kid",
      "username",
      "client_ip",
      "user_agent"
    ].map((name) => [name, text])
  ),
  contact: [text, text],
  identifiers: [text, text],
  certificates: [certificate(text), certificate(text)],
  not_after: 1_927_947_906,
  reason: 1,
  total: 2,
  superseded: 1,
  lead_days: 14,
  outcome: "succeeded_from_new_address",
  by_self: false,
  ...kind === "expiry_reminder" ? { recipient: "o'hara+acme@bücher.example" } : {},
  ...kind === "admin_credential_changed"
    ? { change: "contact_address", recipient: "a@example.org", previous_recipient: "jane@bücher.example" }
    : {}
})

const visible = (text: string): string => Buffer.from(text).toString().replaceAll(/\r\n?/g, "\n")

// Outside the gate, only the server that offers least is tried, for which a letter has to be encoded most.
const ways = isFull ? [false, true] : [true]

describe("a mail", () => {
  for (const hideSMTPUTF8 of ways) {
    for (const hide8BITMIME of ways) {
      const offers = [hideSMTPUTF8 ? [] : ["SMTPUTF8"], hide8BITMIME ? [] : ["8BITMIME"]].flat().join(" and ")
      it.live(`is complete for each event if the server offers ${offers || "neither SMTPUTF8 nor 8BITMIME"}`, () =>
        Effect.gen(function*() {
          const server = yield* mailServer({ hideSMTPUTF8, hide8BITMIME })
          const sections = deliveries(toml(server.port, "ops@example.org"))
          yield* Effect.provide(
            Effect.gen(function*() {
              for (const kind of messageKinds) {
                for (const [name, text] of Object.entries(contents)) {
                  const scope = kind.startsWith("admin_") ? "__admin__" : "default"
                  const before = server.taken.length
                  yield* deliver("email", "-", payload(kind, membersOf(kind, text)), scope)
                  const message = server.taken[before] ?? assert.fail("nothing was sent")
                  const { mail, raw, recipients } = message
                  const about = `${kind}, ${name}\n${raw.slice(0, 2000)}`
                  assert.deepStrictEqual(letterFaults(message), [], about)
                  assert.lengthOf(server.taken, before + 1)
                  assert.deepStrictEqual(
                    recipients,
                    kind === "expiry_reminder"
                      ? ["o'hara+acme@bücher.example"]
                      : kind === "admin_credential_changed"
                      ? ["jane@bücher.example"]
                      : ["ops@example.org", "two@пример.example"],
                    about
                  )
                  assert.deepInclude(mail.from?.value[0], {
                    name: "Zoë \"Büro\" (4)",
                    address: "acme@bücher.example"
                  }, about)
                  const names = [mail.to ?? []].flat().flatMap(({ value }) => value.map((one) => one.name))
                  assert.deepStrictEqual(names, recipients.map((one) => one.startsWith("two") ? "Łódź; Büro: 2" : ""))
                  assert.strictEqual(mail.messageId, `<${deliveryId}@xn--bcher-kva.example>`)
                  if (name === "other scripts" && kind !== "profile_mounted") assert.include(mail.text, text, about)
                  if (name.startsWith("10,000") && kind === "challenge_failed") assert.include(mail.text, text, about)
                  if (name === "quotes and markup" && kind === "account_created") {
                    assert.include(mail.text, visible(text), about)
                  }
                }
              }
            }),
            sections
          )
        }))
    }
  }

  it.live("uses SMTPUTF8 for an address with non-ASCII characters before the @ if the server supports it", () =>
    Effect.gen(function*() {
      const asked: Array<unknown> = []
      const server = yield* mailServer({
        onMailFrom: ({ args }, _, done) => {
          asked.push(args)
          done()
        }
      })
      yield* Effect.provide(deliver("email", "-"), deliveries(toml(server.port, "zoë@bücher.example")))
      assert.deepStrictEqual(asked, [{ SMTPUTF8: true }])
      assert.deepStrictEqual(server.taken[0]?.recipients, ["zoë@bücher.example", "two@пример.example"])
    }))
})
