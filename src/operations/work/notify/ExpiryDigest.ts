import * as Effect from "effect/Effect"
import type { JobFailure } from "../../../domain/JobFailure.ts"
import { emit } from "../../../domain/words/Log.ts"
import { count } from "../../../domain/words/Series.ts"
import type { Outcome } from "../../../engine/queue/Outcome.ts"
import { DatabaseFailed, Reschedule, Retry } from "../../../engine/queue/Outcome.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { afterCommit } from "../../../engine/sql/Database.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import type { Notifier } from "../../../services/notify/Notifier.ts"
import { notify } from "../../../services/notify/Notifier.ts"
import type { ProfileConfig } from "../../../settings/AppConfig.ts"
import * as digests from "../../../store/notify/Digests.ts"
import * as expiring from "../ExpiringDigest.ts"
import * as unknownEnds from "../UnknownEnds.ts"
import { certificatesOf } from "./ExpiringFields.ts"

/*
 * Sends the digest of certificates that expire soon (docs/contribute/decisions/notifications.md, "Expiring
 * certificates").
 */

const daySeconds = 86_400

/**
 * A worker whose clock is ahead sends the digest by its own clock, and so too early. The other workers wait this number
 * of seconds longer, so that they do not send the digest too.
 */
export const marginSeconds = 3600

type Last = Effect.Success<ReturnType<typeof digests.last>>

/**
 * Returns when the next digest is due, and since when the time of the last digest is in doubt. If that time is in the
 * future, it cannot be used, and the period is counted from the moment at which this was first noticed.
 */
const dueOf = (last: Last, now: number, interval: number) => {
  if (last === undefined) return { at: now, doubtedAt: undefined }
  if (last.sentAt <= now) return { at: last.sentAt + interval, doubtedAt: last.doubtedAt }
  const doubtedAt = Math.min(last.doubtedAt ?? now, now)
  return { at: doubtedAt + interval + marginSeconds, doubtedAt }
}

type Profile = Pick<ProfileConfig, "name"> & { readonly notify: Pick<ProfileConfig["notify"], "expiry"> }

/** Finds the certificates that expire soon. Returns the writes that are committed when the attempt ends. */
const gathered = Effect.fnUntraced(function*({ name: profile, notify: { expiry } }: Profile) {
  yield* unknownEnds.fill(profile)
  const { items, now, superseded, total } = yield* expiring.digest(profile, expiry.lead_days, expiry.max_entries)
  const isTold = total > superseded
  const tell = notify({
    event: "certificates_expiring",
    scope: profile,
    fields: {
      generated_at: now,
      lead_days: expiry.lead_days,
      total,
      superseded,
      certificates: certificatesOf(items)
    }
  })
  const outcome = isTold ? "queued" : "skipped"
  const about = Effect.andThen(
    emit(isTold ? "notify_expiry_digest_queued" : "notify_expiry_digest_skipped", { profile, total }),
    count("acme_svc_notify_expiry_digests_total", { profile, outcome })
  )
  return Effect.andThen(isTold ? tell : Effect.void, afterCommit(about))
})

/**
 * Checks a profile once. One transaction writes the deliveries, the time of the digest and the time at which the job
 * runs next. If a worker is killed before this transaction, nothing was sent. If it is killed afterwards, nothing is
 * left to send.
 */
export const look = (
  profile: Profile
): Effect.Effect<Outcome<Database | Notifier, JobFailure>, StorageFailed, Database | Notifier> =>
  Effect.gen(function*() {
    const { name } = profile
    const now = yield* currentSeconds
    const interval = profile.notify.expiry.interval_days * daySeconds
    const last = yield* digests.last(name)
    const { at, doubtedAt } = dueOf(last, now, interval)
    if (at > now) {
      const isNew = doubtedAt !== undefined && doubtedAt !== last?.doubtedAt
      return Reschedule(at, isNew ? { commit: digests.doubt(name, doubtedAt) } : {})
    }
    const tell = yield* gathered(profile)
    return Reschedule(now + interval, { commit: Effect.andThen(digests.sent(name, now), tell) })
  }).pipe(Effect.catch(({ message }) => failed(profile, message)))

const failed = Effect.fnUntraced(function*({ name, notify: { expiry } }: Profile, error: string) {
  yield* emit("notify_expiry_digest_failed", { profile: name, error })
  yield* count("acme_svc_notify_expiry_digests_total", { profile: name, outcome: "failed" })
  return Retry(new DatabaseFailed({ detail: error }), { atMost: expiry.interval_days * daySeconds })
})
