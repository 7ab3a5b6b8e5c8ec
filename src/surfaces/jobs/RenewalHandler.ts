import * as Effect from "effect/Effect"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { handler } from "../../domain/words/JobKind.ts"
import { periodicKey } from "../../engine/queue/Job.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import { Done } from "../../engine/queue/Outcome.ts"
import type { Database } from "../../engine/sql/Database.ts"
import type { Resting } from "../../operations/work/UpstreamRenewals.ts"
import { askUpstreams, renewalsEverySeconds } from "../../operations/work/UpstreamRenewals.ts"
import { Signers } from "../../services/signing/Signer.ts"
import type { Config } from "../../settings/AppConfig.ts"

/**
 * A pass begins no new request after half a minute, but its last request may take as long as two unanswered requests.
 */
const budgetMillis = 120_000

/**
 * Makes the job that asks the upstreams of relays when to renew certificates. The job runs each hour, and also at each
 * startup and reload.
 */
export const renewalHandler = (
  { profiles }: Pick<Config, "profiles">,
  signers: Signers["Service"]
): AnyHandler<Database, JobFailure> => {
  const relays = profiles.some(({ enabled, signer }) => enabled && signer.backend === "relay")
  const within = Effect.provideService(Signers, signers)
  const resting: Resting = new Map()
  return handler<"upstream_renewals", Database, JobFailure>({
    kind: "upstream_renewals",
    subjects: relays ? [{ key: periodicKey, payload: {} }] : [],
    reachSeconds: renewalsEverySeconds,
    budgetMillis: () => budgetMillis,
    run: () => relays ? within(askUpstreams(resting)) : Effect.succeed(Done()),
    abandon: () => Effect.void
  })
}
