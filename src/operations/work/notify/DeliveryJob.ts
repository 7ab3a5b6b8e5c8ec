import * as Effect from "effect/Effect"
import type { JobFailure } from "../../../domain/JobFailure.ts"
import { NotDelivered, TargetNotServed } from "../../../domain/JobFailure.ts"
import { contactEvent } from "../../../domain/Notification.ts"
import type { PayloadOf } from "../../../domain/words/JobKind.ts"
import { enqueueJob } from "../../../domain/words/JobKind.ts"
import { emit } from "../../../domain/words/Log.ts"
import { count } from "../../../domain/words/Series.ts"
import type { Job } from "../../../engine/queue/Job.ts"
import { Done, Failed, Retry } from "../../../engine/queue/Outcome.ts"
import { afterCommit } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
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

/** Queues the delivery of a mail to the recipients that were refused for now. The others have it. */
const toOthers = (payload: Payload, { deadline, share }: Job, left: ReadonlyArray<string>, runAt: number) => {
  const { backend, entry, fields: { delivery_id } } = payload
  return Effect.asVoid(enqueueJob({
    kind: "notify_deliver",
    // There are fewer recipients each time.
    dedupKey: `${delivery_id}/${backend}/${entry}/${left.length}`,
    share,
    payload: { ...payload, to: left },
    runAt,
    ...deadline === undefined ? {} : { deadline }
  }))
}

const refused = Effect.fnUntraced(function*(payload: Payload, job: Job, refusal: DeliveryRefused, terms: Terms) {
  const { afterSeconds, detail, exitCode, hope, left = [], status } = refusal
  const isRetried = hope === "retry" || left.length > 0
  yield* emit("notify_delivery_failed", {
    ...aboutOf(payload),
    retryable: isRetried,
    status,
    exit_code: exitCode,
    error: detail
  })
  yield* counted(payload, isRetried ? "retried" : "failed")
  const failure = new NotDelivered({ detail, ...(status === undefined ? {} : { status }) })
  if (left.length > 0) {
    return Done({ commit: toOthers(payload, job, left, (yield* currentSeconds) + terms.retryBaseSeconds) })
  }
  if (hope === "ended") return Done()
  if (hope === "never") return Failed(failure)
  return Retry(failure, afterSeconds === undefined ? {} : { atLeast: Math.min(afterSeconds, terms.retryMaxSeconds) })
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
  readonly retryBaseSeconds: number
  readonly retryMaxSeconds: number
  /** Returns whether mail is sent to the contacts of the accounts of a profile. */
  readonly remindsAt: (profile: string) => boolean
}

/** Makes one attempt to notify one receiver (docs/contribute/decisions/notifications.md, "Delivery"). */
export const deliver = Effect.fnUntraced(function*(queued: Payload, job: Job, terms: Terms) {
  const about = aboutOf(queued)
  const { deliver } = yield* Deliveries
  const isReminder = queued.event === contactEvent
  const reminder = isReminder && terms.remindsAt(queued.scope) ? yield* reminders.current(queued) : undefined
  if (isReminder && reminder === undefined) return yield* dropped(queued)
  const payload = { ...queued, fields: reminder ?? queued.fields }
  const attempt = yield* Effect.result(deliver(payload))
  if (attempt._tag === "Success") {
    yield* emit("notify_delivered", { ...about, attempts: job.attempts })
    yield* counted(payload, "delivered")
    return Done()
  }
  if (attempt.failure._tag === "DeliveryRefused") return yield* refused(queued, job, attempt.failure, terms)
  yield* emit("notify_delivery_target_missing", about)
  const { backend, entry, scope } = payload
  return Retry(new TargetNotServed({ scope, target: `${backend}/${entry}` }))
})

/** Ends a delivery that was given up. Nothing else depends on the delivery. */
export const abandon = (payload: Payload, failure: JobFailure) =>
  afterCommit(emit("notify_delivery_abandoned", { ...aboutOf(payload), error: failure.text }))
