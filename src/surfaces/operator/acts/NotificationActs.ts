import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { messageKinds, onlyEntry } from "../../../domain/Notification.ts"
import * as trial from "../../../operations/operator/NotificationTrial.ts"
import { deliveryObject, list } from "../../../operations/operator/Recent.ts"
import { renderTable } from "../../cli/TextTable.ts"
import { act, noun } from "../Act.ts"
import { Acting, Configured, paged } from "../Acting.ts"
import { name, optional, paging, word } from "../Field.ts"
import { Int, pageOf, Time } from "../schemas/Common.ts"
import { JobStatus } from "../schemas/OrderSchemas.ts"

/* Declares the acts about notifications to people and programs (docs/contribute/decisions/notifications.md). */

const backend = Schema.Literals(["email", "webhook", "custom"])

/** Returns the name of a receiver, or an empty text if the name cannot be read from the job. */
export const receiverOf = (backend: string | undefined, entry: string | undefined): string =>
  [backend, entry === onlyEntry ? undefined : entry].filter((part) => part !== undefined).join(" ")

/** Lists deliveries. */
export const listDeliveries = act({
  id: "listDeliveries",
  does: "List deliveries, newest first, each with its last error",
  access: "viewer",
  mayLag: true,
  input: paging,
  output: pageOf(
    Schema.Struct({
      id: Schema.String.annotate({ description: "The id of the job." }),
      profile: Schema.optionalKey(Schema.String),
      backend: Schema.optionalKey(backend),
      entry: Schema.optionalKey(Schema.String),
      event: Schema.optionalKey(Schema.String),
      deliveryId: Schema.optionalKey(Schema.String),
      status: JobStatus,
      attempts: Int,
      maxAttempts: Int,
      lastError: Schema.optionalKey(Schema.String),
      createdAt: Time,
      updatedAt: Time,
      runAt: Time
    }).annotate({ identifier: "Delivery" })
  ),
  errors: [],
  run: (window) => paged(window, list, deliveryObject),
  http: { route: "GET /api/notify/deliveries" },
  cli: {
    command: "notify list",
    example: "notify list --limit 10",
    columns: (
      { attempts, backend, entry, event = "", id, lastError = "", maxAttempts, profile = "", runAt, status }
    ) => ({
      id,
      profile,
      receiver: receiverOf(backend, entry),
      event,
      status,
      attempts: `${attempts}/${maxAttempts}`,
      due: runAt,
      "last error": lastError
    })
  }
})

/** Sends samples of notifications. */
export const testNotifications = act({
  id: "testNotifications",
  does: "Send a sample of each event now, and show the answers",
  access: "operator",
  input: {
    target: optional(
      name("A backend, or the name of a webhook or a program. If this is absent, every receiver gets the samples.", {
        help: "email, webhook, custom, or the name of one entry. If no receiver is named, all of them get the samples."
      })
    ),
    event: optional(word(messageKinds, "Only this event. The default is every event that the receiver wants.")),
    profile: optional(
      name("Only the receivers of this profile. __admin__ means the receivers of operators' notifications.")
    )
  },
  output: Schema.Struct({
    items: Schema.Array(
      Schema.Struct({
        profile: Schema.String,
        backend,
        entry: Schema.String,
        event: Schema.Literals(messageKinds),
        delivered: Schema.Boolean,
        answer: Schema.String
      }).annotate({ identifier: "TriedDelivery" })
    )
  }),
  errors: [],
  run: (wanted) =>
    Effect.gen(function*() {
      return { items: yield* trial.test(yield* Configured.config, yield* Acting.operator, wanted) }
    }),
  http: { route: "POST /api/notify/test" },
  cli: {
    command: "notify test",
    help: "Send a sample of each event now, and print the answers.",
    example: "notify test email",
    args: ["target"],
    flags: { target: { flag: "receiver" } },
    needsConfig: () => true,
    text: ({ items }) =>
      renderTable(
        ["profile", "receiver", "event", "result", "answer"],
        items.map(({ answer, backend, delivered, entry, event, profile }) => [
          profile,
          receiverOf(backend, entry),
          event,
          delivered ? "ok" : "failed",
          answer
        ]),
        items.length
      ),
    faults: ({ items }) => {
      const failed = items.filter(({ delivered }) => !delivered).length
      return failed === 0 ? [] : [{ code: 1, message: `${failed} of ${items.length} could not be delivered.` }]
    }
  }
})

/** The acts about notifications. */
export const notificationActs = noun({
  name: "notifications",
  description: "Notifications that people and programs get.",
  commands: { notify: "Notifications by mail, webhook and program." },
  acts: [listDeliveries, testNotifications]
})
