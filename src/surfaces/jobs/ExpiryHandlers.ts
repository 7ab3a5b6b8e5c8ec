import * as Effect from "effect/Effect"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { TargetNotServed } from "../../domain/JobFailure.ts"
import { handler } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import type { Outcome } from "../../engine/queue/Outcome.ts"
import { Done, Retry } from "../../engine/queue/Outcome.ts"
import type { Database, StorageFailed } from "../../engine/sql/Database.ts"
import { afterCommit } from "../../engine/sql/Database.ts"
import * as digest from "../../operations/work/notify/ExpiryDigest.ts"
import * as reminders from "../../operations/work/notify/Reminders.ts"
import type { Notifier } from "../../services/notify/Notifier.ts"
import { hasDigest, hasReminders } from "../../services/notify/NotifyRoutes.ts"
import type { Config, ProfileConfig } from "../../settings/AppConfig.ts"

/* The periodic jobs of each profile that reports expiring certificates. */

type Needs = Database | Notifier

interface Kind {
  readonly kind: "notify_expiry_digest" | "notify_expiry_reminders"
  readonly retired: "notify_expiry_digest_retired" | "notify_expiry_reminders_retired"
  readonly isWanted: (section: ProfileConfig["notify"]) => boolean
  readonly look: (profile: ProfileConfig) => Effect.Effect<Outcome<Needs, JobFailure>, StorageFailed, Needs>
  /** The longest time between two runs. */
  readonly reachSeconds: (profile: ProfileConfig) => number
}

const daySeconds = 86_400

const kinds: ReadonlyArray<Kind> = [
  {
    kind: "notify_expiry_digest",
    retired: "notify_expiry_digest_retired",
    isWanted: hasDigest,
    look: digest.look,
    reachSeconds: ({ notify }) => notify.expiry.interval_days * daySeconds + digest.marginSeconds
  },
  {
    kind: "notify_expiry_reminders",
    retired: "notify_expiry_reminders_retired",
    isWanted: hasReminders,
    look: reminders.look,
    reachSeconds: () => daySeconds
  }
]

/**
 * After this many attempts, which take most of a day, the row of a profile ends if no process that tried it serves the
 * profile. Until then, a process with a different configuration may still serve the profile.
 */
const mostLooks = 20

/** Makes the handlers of the two kinds. If a profile no longer wants the job, its row ends. */
export const expiryHandlers = (
  { jobs, profiles }: Pick<Config, "jobs" | "profiles">
): ReadonlyArray<AnyHandler<Needs, JobFailure>> => {
  const served = new Map(profiles.filter(({ enabled }) => enabled).map((profile) => [profile.name, profile]))
  return kinds.map(({ isWanted, kind, look, reachSeconds, retired }) => {
    const wanted = [...served.values()].filter(({ notify }) => isWanted(notify))
    return handler<typeof kind, Needs, JobFailure>({
      kind,
      subjects: wanted.map(({ name }) => ({ key: name, payload: { profile: name } })),
      reachSeconds: Math.max(0, ...wanted.map(reachSeconds)),
      budgetMillis: () => jobs.lease_seconds * 1000,
      run: ({ profile: name }, { attempts }) => {
        const profile = served.get(name)
        if (profile !== undefined && isWanted(profile.notify)) return look(profile)
        return Effect.succeed(
          profile === undefined && attempts < mostLooks
            ? Retry(new TargetNotServed({ scope: name, target: "notify.expiry" }))
            : Done({ commit: afterCommit(emit(retired, { profile: name })) })
        )
      },
      abandon: () => Effect.void
    })
  })
}
