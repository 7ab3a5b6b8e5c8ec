import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { Entropy } from "../../crypto/Entropy.ts"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { handler } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import { DatabaseFailed, Reschedule, Retry } from "../../engine/queue/Outcome.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { chainRows } from "../../operations/work/AuditChaining.ts"
import { signHead } from "../../operations/work/HeadSigning.ts"
import type { Issuers } from "../../services/signing/Issuers.ts"
import type { Config } from "../../settings/AppConfig.ts"

const everySeconds = 60
const mostLinks = 100
const complaintSeconds = 3600

/**
 * Makes the job that chains the rows of the audit trail each minute, and signs the head of the chain each day. If the
 * key cannot be used, the rows are chained nevertheless, and the failure is logged once an hour.
 */
export const chainHandler = Effect.fnUntraced(function*(
  { audit, jobs, profiles }: Pick<Config, "audit" | "jobs" | "profiles">,
  issuers: Issuers["Service"]
) {
  const complained = yield* Ref.make(Number.NEGATIVE_INFINITY)
  const caKeys = new Set(profiles.flatMap(({ name }) => issuers.all(name).map(({ issuer }) => issuer.id)))
  const signed = audit.chain_key_path === "" ? Effect.void : Effect.catchTag(
    signHead(audit.chain_key_path, caKeys),
    "HeadKeyUnusable",
    ({ detail }) =>
      Effect.gen(function*() {
        const now = yield* currentSeconds
        if (now - (yield* Ref.get(complained)) < complaintSeconds) return
        yield* Ref.set(complained, now)
        yield* emit("audit_head_unsigned", { error: detail })
      })
  )
  const made: AnyHandler<Database | Entropy, JobFailure> = handler<"audit_chain", Database | Entropy, JobFailure>({
    kind: "audit_chain",
    reachSeconds: everySeconds,
    budgetMillis: () => jobs.lease_seconds * 1000,
    run: () =>
      Effect.gen(function*() {
        const result = yield* Effect.result(Effect.tap(chainRows(mostLinks), signed))
        if (result._tag === "Success") {
          return Reschedule((yield* currentSeconds) + (result.success.hasMore ? 0 : everySeconds))
        }
        const error = result.failure.message
        yield* emit("audit_chain_failed", { error })
        return Retry(new DatabaseFailed({ detail: error }), { atMost: everySeconds })
      }),
    abandon: () => Effect.void
  })
  return made
})
