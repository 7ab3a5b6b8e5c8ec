import * as Effect from "effect/Effect"
import type { JobFailure } from "../../../domain/JobFailure.ts"
import { NotDelivered, TargetNotServed } from "../../../domain/JobFailure.ts"
import { contactEvent } from "../../../domain/Notification.ts"
import type { PayloadOf } from "../../../domain/words/JobKind.ts"
import { emit } from "../../../domain/words/Log.ts"
import { count } from "../../../domain/words/Series.ts"
import type { Job } from "../../../engine/queue/Job.ts"
import { Done, Failed, Retry } from "../../../engine/queue/Outcome.ts"
import { afterCommit } from "../../../engine/sql/Database.ts"
import { Deliveries } from "../../../services/notify/Deliveries.ts"
import type { DeliveryRefused } from "../../../services/notify/Delivery.ts"
import * as reminders from "./Reminders.ts"

type Payload = PayloadOf<"notify_deliver">

const aboutOf = ({ backend, entry, event, fields: { delivery_id }, scope }: Payload) => ({
  profile: scope,
  backend,
  entry,
  hook: event,
  delivery_id
})

const counted = ({ backend, scope }: Payload, outcome: "delivered" | "retried" | "failed") =>
  count("acme_svc_notify_deliveries_total", { profile: scope, backend, outcome })

const refused = Effect.fnUntraced(function*(payload: Payload, refusal: DeliveryRefused, retryMaxSeconds: number) {
  const { afterSeconds, detail, exitCode, hope, status } = refusal
  yield* emit("notify_delivery_failed", {
    ...aboutOf(payload),
    retryable: hope === "retry",
    status,
    exit_code: exitCode,
    error: detail
  })
  yield* counted(payload, hope === "retry" ? "retried" : "failed")
  const failure = new NotDelivered({ detail, ...(status === undefined ? {} : { status }) })
  if (hope === "ended") return Done()
  if (hope === "never") return Failed(failure)
  return Retry(failure, afterSeconds === undefined ? {} : { atLeast: Math.min(afterSeconds, retryMaxSeconds) })
})

/** Ends the job of a mail to a contact, because there is nothing left to report. */
const dropped = Effect.fnUntraced(function*({ fields, scope }: Payload) {
  const { account_id, delivery_id } = fields
  yield* emit("notify_expiry_reminder_dropped", { profile: scope, account_id: String(account_id), delivery_id })
  yield* count("acme_svc_notify_expiry_reminders_total", { profile: scope, outcome: "dropped" })
  return Done()
})

/** The settings on which deliveries depend. */
export interface Terms {
  readonly retryMaxSeconds: number
  /** Returns whether mail is sent to the contacts of the accounts of a profile. */
  readonly remindsAt: (profile: string) => boolean
}

/** Makes one attempt to notify one receiver (docs/contribute/decisions/notifications.md, "Delivery"). */
export const deliver = Effect.fnUntraced(function*(queued: Payload, job: Job, { remindsAt, retryMaxSeconds }: Terms) {
  const about = aboutOf(queued)
  const { deliver } = yield* Deliveries
  const isReminder = queued.event === contactEvent
  const reminder = isReminder && remindsAt(queued.scope) ? yield* reminders.current(queued) : undefined
  if (isReminder && reminder === undefined) return yield* dropped(queued)
  const payload = { ...queued, fields: reminder ?? queued.fields }
  const attempt = yield* Effect.result(deliver(payload))
  if (attempt._tag === "Success") {
    yield* emit("notify_delivered", { ...about, attempts: job.attempts })
    yield* counted(payload, "delivered")
    return Done()
  }
  if (attempt.failure._tag === "DeliveryRefused") return yield* refused(payload, attempt.failure, retryMaxSeconds)
  yield* emit("notify_delivery_target_missing", about)
  const { backend, entry, scope } = payload
  return Retry(new TargetNotServed({ scope, target: `${backend}/${entry}` }))
})

/** Ends a delivery that was given up. Nothing else depends on the delivery. */
export const abandon = (payload: Payload, failure: JobFailure) =>
  afterCommit(emit("notify_delivery_abandoned", { ...aboutOf(payload), error: failure.text }))
