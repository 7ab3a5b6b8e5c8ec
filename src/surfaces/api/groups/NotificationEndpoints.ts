import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { messageKinds } from "../../../domain/Notification.ts"
import { reachedBy } from "../../operator/ReachedBy.ts"
import { Int, optionalMember, pageOf, Time } from "../../operator/schemas/Common.ts"
import { JobStatus } from "../../operator/schemas/OrderSchemas.ts"
import { paging } from "../../operator/schemas/Parameters.ts"

/* Notifications to people and programs. */

const backend = Schema.Literals(["email", "webhook", "custom"])

const Delivery = Schema.Struct({
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

const Tried = Schema.Struct({
  profile: Schema.String,
  backend,
  entry: Schema.String,
  event: Schema.Literals(messageKinds),
  delivered: Schema.Boolean,
  answer: Schema.String
}).annotate({ identifier: "TriedDelivery" })

const told = (description: string) => optionalMember(Schema.String.annotate({ description }))

/** `/api/notify` */
export const notifications = HttpApiGroup.make("notifications").add(
  HttpApiEndpoint.get("listDeliveries", "/api/notify/deliveries", { query: paging, success: pageOf(Delivery) })
    .annotate(OpenApi.Summary, "List deliveries, newest first, each with its last error")
    .annotateMerge(reachedBy("viewer")),
  HttpApiEndpoint.post("testNotifications", "/api/notify/test", {
    payload: Schema.Struct({
      target: told("A backend, or the name of a webhook or a program. Without it, every receiver is told."),
      event: told("Only this event. The default is each that the receiver wants."),
      profile: told("Only the receivers of this profile; __admin__ for those of operators.")
    }),
    success: Schema.Struct({ items: Schema.Array(Tried) })
  })
    .annotate(OpenApi.Summary, "Send a sample of each event now, and say what was answered")
    .annotateMerge(reachedBy("operator"))
).annotate(OpenApi.Description, "What people and programs are told.")
