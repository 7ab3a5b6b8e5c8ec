import { it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { readFileSync } from "node:fs"
import { assert, describe } from "vitest"
import type { NotificationEvent, Payload } from "../../../src/domain/Notification.ts"
import { notificationEvents } from "../../../src/domain/Notification.ts"
import { outsideSubset } from "../../../src/kernel/template/Subset.ts"
import { compileMessages } from "../../../src/services/notify/MessageTemplates.ts"
import { resolveConfig } from "../../../src/settings/Resolve.ts"
import { issued, payload } from "../../support/Notified.ts"

/* The examples of docs/notifications.md: each is taken, and each body is what its receiver publishes that it reads. */

const text = readFileSync(new URL("../../../docs/notifications.md", import.meta.url), "utf8")
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(([, body = ""]) => body)
const configs = blocks("toml")

const configOf = (toml: string) =>
  Either.getOrThrowWith(
    resolveConfig({ fileText: `${toml}\n[profiles.default]\n`, env: {} }),
    ({ message }) => new Error(message)
  ).config

const nasty = "a\"\\\r\n\u2028<b>&{{ x }}😀"

/** An event with hostile text wherever a client or a host has a say. */
const eventOf = (event: NotificationEvent): Payload =>
  event === "certificate_issued"
    ? issued({ identifiers: ["a.example"] })
    : payload(event, { username: nasty, identifier: nasty, error: nasty, challenge_type: "http-01", user_agent: nasty })

type Json = Record<string, unknown>
const isText = (value: unknown): boolean => typeof value === "string" && value !== ""

/** What each receiver publishes that it wants, for the members that are used. */
const schemas: { readonly [entry: string]: (body: Json) => void } = {
  // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks: text or blocks
  slack: ({ text }) => assert.isTrue(isText(text)),
  chat: ({ text }) => assert.isTrue(isText(text)),
  // https://developers.mattermost.com/integrate/webhooks/incoming: text, username
  mattermost: ({ text, username }) => assert.isTrue(isText(text) && isText(username)),
  matrix: ({ text }) => assert.isTrue(isText(text)),
  // A message with attachments of the content type of Adaptive Cards
  teams: ({ attachments, type }) => {
    assert.strictEqual(type, "message")
    const [{ content, contentType }] = attachments as [{ content: Json; contentType: string }]
    assert.strictEqual(contentType, "application/vnd.microsoft.card.adaptive")
    assert.deepInclude(content, { type: "AdaptiveCard", version: "1.4" })
  },
  // https://discord.com/developers/docs/resources/webhook#execute-webhook: content of at most 2000 characters
  discord: ({ content }) => assert.isTrue(isText(content) && String(content).length <= 2000),
  // Events API v2: routing_key of 32 characters, event_action, payload with summary, source and severity
  pagerduty: ({ event_action, payload, routing_key }) => {
    assert.deepStrictEqual([String(routing_key).length, event_action], [32, "trigger"])
    const { severity, source, summary, timestamp } = payload as Json
    assert.isTrue(isText(summary) && isText(source) && severity === "warning")
    assert.isFalse(Number.isNaN(Date.parse(String(timestamp))))
  },
  // API v2: postableAlerts, each with labels of text
  alertmanager: (body) => {
    const [{ labels, startsAt }] = body as unknown as [{ labels: Json; startsAt: string }]
    assert.isTrue(Object.values(labels).every(isText))
    assert.isFalse(Number.isNaN(Date.parse(startsAt)))
  },
  own: ({ at, event, id }) => assert.isTrue(isText(id) && isText(event) && typeof at === "number")
}

describe("docs/notifications.md", () => {
  it("has an example for each receiver, and each is taken", () => {
    const entries = configs.flatMap((toml) => Object.keys(configOf(toml).notify.webhook))
    assert.sameMembers(entries, Object.keys(schemas))
  })

  it.scoped.each(configs)(
    "has bodies that their receivers read, whatever the event holds: %#",
    (toml) =>
      Effect.gen(function*() {
        const { notify } = configOf(toml)
        const messages = yield* compileMessages(notify, "notify")
        for (const entry of Object.keys(notify.webhook)) {
          for (const event of notificationEvents) {
            const body: unknown = JSON.parse(yield* messages.webhook(entry, eventOf(event)))
            schemas[entry]?.(body as Json)
          }
        }
      })
  )

  it("has templates in the language there is", () => {
    for (const template of blocks("text")) assert.isUndefined(outsideSubset("document", template))
  })

  it("tells of every event", () => {
    for (const event of notificationEvents) {
      assert.include(text, `| \`${event}\``)
    }
  })
})
