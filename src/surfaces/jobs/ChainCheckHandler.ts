import * as Effect from "effect/Effect"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { handler } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import { DatabaseFailed, Reschedule, Retry } from "../../engine/queue/Outcome.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { checkStep, roundSeconds } from "../../operations/operator/ChainRounds.ts"
import type { Config } from "../../settings/AppConfig.ts"

/**
 * Makes the job that checks the audit chain each day. An attempt makes one step, so the job may end or be killed between
 * any two steps, and other jobs get their turn.
 */
export const chainCheckHandler = (
  { audit, jobs }: Pick<Config, "audit" | "jobs">
): AnyHandler<Database, JobFailure> =>
  handler<"audit_chain_check", Database, JobFailure>({
    kind: "audit_chain_check",
    reachSeconds: roundSeconds,
    budgetMillis: () => jobs.lease_seconds * 1000,
    run: () =>
      Effect.gen(function*() {
        const result = yield* Effect.result(checkStep(audit.chain_key_path))
        if (result._tag === "Success") return Reschedule((yield* currentSeconds) + result.success)
        const error = result.failure._tag === "Busy" ? "other long reads are running" : result.failure.message
        yield* emit("audit_chain_check_failed", { error })
        return Retry(new DatabaseFailed({ detail: error }), { atMost: 3600 })
      }),
    abandon: () => Effect.void
  })
