import addFormats from "ajv-formats"
import { Ajv2020 } from "ajv/dist/2020.js"

/*
 * Schemas of the bodies that receivers accept. Each schema was written by hand from the document that is named above
 * the schema. A schema has only the members that the examples in docs/configure/notifications.md use, with the limits
 * of the receiver.
 */

type Schema = Readonly<Record<string, unknown>>

const text = (bounds: Schema = {}): Schema => ({ type: "string", minLength: 1, ...bounds })

const object = (properties: Readonly<Record<string, Schema>>, optional: ReadonlyArray<string> = []): Schema => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((name) => !optional.includes(name)),
  additionalProperties: false
})

/** An adaptive card in a message, as a workflow of Teams accepts it. */
const card = object({
  $schema: { const: "http://adaptivecards.io/schemas/adaptive-card.json" },
  type: { const: "AdaptiveCard" },
  // 1.4 is the newest version that Teams shows in messages of workflows.
  version: { enum: ["1.0", "1.1", "1.2", "1.3", "1.4"] },
  body: {
    type: "array",
    minItems: 1,
    items: object({ type: { const: "TextBlock" }, wrap: { type: "boolean" }, text: text() })
  }
})

/** Names of labels with their values. A label with an empty value counts as absent. */
const labels: Schema = {
  type: "object",
  propertyNames: { pattern: "^[a-zA-Z_][a-zA-Z0-9_]*$" },
  properties: { alertname: text() },
  required: ["alertname"],
  additionalProperties: text()
}

const schemas: { readonly [receiver: string]: Schema } = {
  // https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks; for the length,
  // https://docs.slack.dev/reference/methods/chat.postMessage
  slack: object({ text: text({ maxLength: 40_000 }) }),
  // https://developers.mattermost.com/integrate/webhooks/incoming, "Parameters"; a post has at most 16,383 characters.
  mattermost: object({ text: text({ maxLength: 16_383 }), username: text({ maxLength: 64 }) }),
  // https://matrix-org.github.io/matrix-hookshot/latest/setup/webhooks.html, "Webhook Handling"
  matrix: object({ text: text(), username: text() }),
  // https://learn.microsoft.com/connectors/teams, "When a Teams webhook request is received"; for the card,
  // https://adaptivecards.io/schemas/1.4.0/adaptive-card.json
  teams: object({
    type: { const: "message" },
    attachments: {
      type: "array",
      minItems: 1,
      items: object({ contentType: { const: "application/vnd.microsoft.card.adaptive" }, content: card })
    }
  }),
  // https://discord.com/developers/docs/resources/webhook#execute-webhook
  discord: object({
    content: text({ maxLength: 2000 }),
    allowed_mentions: object({ parse: { type: "array", items: { enum: ["roles", "users", "everyone"] } } })
  }),
  // https://developer.pagerduty.com/docs/send-alert-event
  pagerduty: object({
    routing_key: { type: "string", pattern: "^[A-Za-z0-9]{32}$" },
    event_action: { enum: ["trigger", "acknowledge", "resolve"] },
    dedup_key: text({ maxLength: 255 }),
    payload: object({
      summary: text({ maxLength: 1024 }),
      source: text(),
      severity: { enum: ["critical", "error", "warning", "info"] },
      timestamp: { type: "string", format: "date-time" },
      component: text(),
      class: text()
    })
  }),
  // postableAlerts in https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
  alertmanager: {
    type: "array",
    minItems: 1,
    items: object({
      labels,
      annotations: { type: "object", additionalProperties: { type: "string" } },
      startsAt: { type: "string", format: "date-time" }
    })
  },
  // These two schemas are about the default body and about the example of a body that an operator writes.
  chat: object({ text: text() }),
  own: object({
    id: { type: "string", format: "uuid" },
    event: text(),
    profile: text(),
    at: { type: "integer", minimum: 0 },
    message: text(),
    identifiers: { type: ["array", "null"], items: text() },
    serial: { type: ["string", "null"], pattern: "^[0-9a-f]+$" }
  })
}

/** The receivers with a known schema. */
export const receivers: ReadonlyArray<string> = Object.keys(schemas)

const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true })
// The module is CommonJS, and its types do not describe all that it exports.
const formats = addFormats as unknown as typeof addFormats.default
formats(ajv)

const judges = new Map(receivers.map((receiver) => [receiver, ajv.compile(schemas[receiver] ?? false)]))

/** Returns what a receiver would refuse in a body, or nothing if the receiver accepts the body. */
export const refusalsOf = (receiver: string, body: unknown): ReadonlyArray<string> => {
  const judge = judges.get(receiver)
  if (judge === undefined) return [`nothing is known of ${receiver}`]
  return judge(body) ? [] : (judge.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}
