import * as Effect from "effect/Effect"
import type { Entropy } from "../../crypto/Entropy.ts"
import { CampaignId } from "../../domain/Id.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { handler } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import { DatabaseFailed, Reschedule, Retry } from "../../engine/queue/Outcome.ts"
import type { Queue } from "../../engine/queue/Queue.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { fill } from "../../operations/work/campaigns/CampaignFilling.ts"
import { revokeRest } from "../../operations/work/campaigns/CampaignRevocation.ts"
import { makeRound } from "../../operations/work/campaigns/CampaignRound.ts"
import type { Notifier } from "../../services/notify/Notifier.ts"
import type { Config } from "../../settings/AppConfig.ts"

type Needs = Database | Entropy | Notifier | Queue

const everySeconds = 60
/** If a round did not reach the end of every campaign, the next one begins after this many seconds. */
const restSeconds = 5

/** Makes the jobs of campaigns: filling one, revoking what is left of one, and the round over all of them each minute. */
export const campaignHandlers = (
  { jobs, profiles }: Pick<Config, "jobs" | "profiles">,
  remindsAt: (profile: string) => boolean
): ReadonlyArray<AnyHandler<Needs, JobFailure>> => {
  const served = new Map(profiles.flatMap(({ enabled, name, signer }) => enabled ? [[name, signer.backend]] : []))
  const budgetMillis = () => jobs.lease_seconds * 1000
  return [
    handler<"campaign_fill", Needs, JobFailure>({
      kind: "campaign_fill",
      budgetMillis,
      run: ({ campaign_id }) => fill(CampaignId(campaign_id)),
      abandon: () => Effect.void // the next round enqueues the job again
    }),
    handler<"campaign_revoke", Needs, JobFailure>({
      kind: "campaign_revoke",
      budgetMillis,
      run: ({ campaign_id }) => revokeRest(CampaignId(campaign_id), (profile) => served.get(profile)),
      abandon: () => Effect.void // the next round enqueues the job again
    }),
    handler<"campaign_round", Needs, JobFailure>({
      kind: "campaign_round",
      reachSeconds: everySeconds,
      budgetMillis,
      run: () =>
        Effect.gen(function*() {
          const round = yield* Effect.result(makeRound(remindsAt))
          if (round._tag === "Success") {
            return Reschedule((yield* currentSeconds) + (round.success ? everySeconds : restSeconds))
          }
          const error = round.failure.message
          yield* emit("campaign_round_failed", { error })
          return Retry(new DatabaseFailed({ detail: error }), { atMost: everySeconds })
        }),
      abandon: () => Effect.void
    })
  ]
}
