import * as Effect from "effect/Effect"
import { stateAt } from "../../domain/IssuerState.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { handler } from "../../domain/words/JobKind.ts"
import { periodicKey } from "../../engine/queue/Job.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import { Done } from "../../engine/queue/Outcome.ts"
import { sharedSeconds } from "../../engine/queue/SharedClock.ts"
import type { Database } from "../../engine/sql/Database.ts"
import type { Signed } from "../../operations/work/notify/AuthorityExpiry.ts"
import { look } from "../../operations/work/notify/AuthorityExpiry.ts"
import type { Notifier } from "../../services/notify/Notifier.ts"
import type { Issuers } from "../../services/signing/Issuers.ts"
import type { Config } from "../../settings/AppConfig.ts"

const daySeconds = 86_400

/**
 * Makes the job that checks how long the CAs of the profiles are still valid. The job runs each day, and also at each
 * startup and reload, which may have changed the CAs or the receivers.
 */
export const authorityHandler = (
  { jobs, profiles }: Pick<Config, "jobs" | "profiles">,
  issuers: Issuers["Service"]
): AnyHandler<Database | Notifier, JobFailure> => {
  const signed = profiles.flatMap(({ enabled, name, signer }) => {
    const cas = enabled ? issuers.all(name) : []
    return cas.map((ca) => ({ profile: name, leafValidityDays: signer.local_ca.leaf_validity_days, ca, cas }))
  })
  // The end of a CA that does not issue any more is expected.
  const needed = Effect.map(sharedSeconds, (now) =>
    signed.filter(({ ca, cas }) => stateAt(ca, cas, now) !== "retired")
      .map(({ ca: { issuer }, leafValidityDays, profile }): Signed => ({ profile, leafValidityDays, issuer })))
  return handler<"authority_expiry", Database | Notifier, JobFailure>({
    kind: "authority_expiry",
    subjects: signed.length === 0 ? [] : [{ key: periodicKey, payload: {} }],
    reachSeconds: daySeconds,
    budgetMillis: () => jobs.lease_seconds * 1000,
    run: () => signed.length === 0 ? Effect.succeed(Done()) : Effect.flatMap(needed, look),
    abandon: () => Effect.void
  })
}
