import * as Effect from "effect/Effect"
import type { JobFailure } from "../../../domain/JobFailure.ts"
import { emit } from "../../../domain/words/Log.ts"
import type { Outcome } from "../../../engine/queue/Outcome.ts"
import { Reschedule } from "../../../engine/queue/Outcome.ts"
import type { Database, StorageFailed } from "../../../engine/sql/Database.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { Notifier, notify } from "../../../services/notify/Notifier.ts"
import type { Issuer } from "../../../services/signing/Issuers.ts"
import * as notices from "../../../store/notify/AuthorityNotices.ts"

/* Notices about CAs that expire soon (docs/contribute/decisions/notifications.md, "CAs that end"). */

/** A profile with the CA that signs for it. */
export interface Signed {
  readonly profile: string
  readonly leafValidityDays: number
  readonly issuer: Pick<Issuer, "id" | "subject" | "firstToEnd">
}

const daySeconds = 86_400

/** The thresholds, in days before the expiry of a CA. At each threshold, receivers are notified once. */
const thresholds = [1, 7, 30, 90] as const

/** Warns about each CA that expires within the validity of its leaves or within ninety days. */
const advise = (signed: ReadonlyArray<Signed>, now: number) => {
  const due = new Map(
    signed.flatMap(({ issuer: { firstToEnd: { notAfter }, id }, leafValidityDays }) =>
      notAfter < now + Math.max(leafValidityDays, 90) * daySeconds ? [[id, notAfter] as const] : []
    )
  )
  return Effect.forEach(
    due,
    ([issuer, notAfter]) => emit("local_ca_expiring", { issuer, not_after: rfc3339(notAfter) }),
    { discard: true }
  )
}

/**
 * Returns the writes that notify the receivers of a profile, if there is a notice that they want but have not received.
 */
const telling = Effect.fnUntraced(function*({ issuer, profile }: Signed, now: number) {
  const { isWanted } = yield* Notifier
  const { notAfter, subject } = issuer.firstToEnd
  const days = thresholds.find((many) => notAfter - now <= many * daySeconds)
  if (days === undefined || !isWanted("authority_expiring", profile)) return Effect.void
  const last = yield* notices.last(profile, issuer.id)
  if (last?.notAfter === notAfter && last.days <= days) return Effect.void
  const tell = notify({
    event: "authority_expiring",
    scope: profile,
    fields: {
      issuer: issuer.id,
      subject: issuer.subject,
      chain_ends_with: subject,
      not_after: notAfter,
      days_remaining: Math.max(0, Math.floor((notAfter - now) / daySeconds))
    }
  })
  return Effect.andThen(notices.told({ profile, issuer: issuer.id, notAfter, days }), tell)
})

/** Returns the time of the next check: in a day, or earlier if a CA reaches its next threshold. */
const nextLook = (signed: ReadonlyArray<Signed>, now: number): number =>
  Math.min(
    now + daySeconds,
    ...signed.flatMap(({ issuer }) => thresholds.map((days) => issuer.firstToEnd.notAfter - days * daySeconds))
      .filter((at) => at > now)
  )

/**
 * Checks the CAs of the profiles once. One transaction writes the notices, the record of them, and the time at which
 * the job runs next.
 */
export const look = (
  signed: ReadonlyArray<Signed>
): Effect.Effect<Outcome<Database | Notifier, JobFailure>, StorageFailed, Database | Notifier> =>
  Effect.gen(function*() {
    const now = yield* currentSeconds
    yield* advise(signed, now)
    const commit = yield* Effect.forEach(signed, (one) => telling(one, now))
    return Reschedule(nextLook(signed, now), { commit: Effect.all(commit, { discard: true }) })
  })
