import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { messageKinds } from "../../../domain/Notification.ts"
import { reachedBy } from "../Access.ts"
import { pageOf, Time } from "../schemas/Common.ts"
import { JobStatus } from "../schemas/Orders.ts"
import { paging } from "../schemas/Parameters.ts"

/* Notifications to people and programs. */

const backend = Schema.Literal("email", "webhook", "custom")

const Delivery = Schema.Struct({
  id: Schema.String.annotations({ description: "The id of the job." }),
  profile: Schema.optional(Schema.String),
  backend: Schema.optional(backend),
  entry: Schema.optional(Schema.String),
  event: Schema.optional(Schema.String),
  deliveryId: Schema.optional(Schema.String),
  status: JobStatus,
  attempts: Schema.Int,
  maxAttempts: Schema.Int,
  lastError: Schema.optional(Schema.String),
  createdAt: Time,
  updatedAt: Time,
  runAt: Time
}).annotations({ identifier: "Delivery" })

const Tried = Schema.Struct({
  profile: Schema.String,
  backend,
  entry: Schema.String,
  event: Schema.Literal(...messageKinds),
  delivered: Schema.Boolean,
  answer: Schema.String
}).annotations({ identifier: "TriedDelivery" })

const told = (description: string) => Schema.optional(Schema.String.annotations({ description }))

/** `/api/notify` */
export const notifications = HttpApiGroup.make("notifications").add(
  HttpApiEndpoint.get("listDeliveries", "/api/notify/deliveries")
    .setUrlParams(Schema.Struct(paging))
    .addSuccess(pageOf(Delivery))
    .annotate(OpenApi.Summary, "List deliveries, newest first, each with its last error")
    .pipe(reachedBy("viewer"))
)
  .add(
    HttpApiEndpoint.post("testNotifications", "/api/notify/test")
      .setPayload(Schema.Struct({
        target: told("A backend, or the name of a webhook or a program. Without it, every receiver is told."),
        event: told("Only this event. The default is each that the receiver wants."),
        profile: told("Only the receivers of this profile; __admin__ for those of operators.")
      }))
      .addSuccess(Schema.Struct({ items: Schema.Array(Tried) }))
      .annotate(OpenApi.Summary, "Send a sample of each event now, and say what was answered")
      .pipe(reachedBy("operator"))
  ).annotate(OpenApi.Description, "What people and programs are told.")
