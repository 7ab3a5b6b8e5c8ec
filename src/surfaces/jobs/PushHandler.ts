import * as Effect from "effect/Effect"
import type { JobFailure } from "../../domain/JobFailure.ts"
import { TargetNotServed } from "../../domain/JobFailure.ts"
import { handler } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import type { AnyHandler } from "../../engine/queue/Kind.ts"
import { DatabaseFailed, Done, Reschedule, Retry } from "../../engine/queue/Outcome.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { afterCommit } from "../../engine/sql/Database.ts"
import { currentSeconds } from "../../engine/Time.ts"
import { longestPushWait, passBudgetMillis, pushRows } from "../../operations/work/AuditPush.ts"
import type { AuditReceivers } from "../../services/audit/AuditReceivers.ts"
import type { Config } from "../../settings/AppConfig.ts"

const everySeconds = 10

/**
 * After this many attempts the row of a receiver ends if no process that tried it has the receiver. Until then, a
 * process with a different configuration may still have it.
 */
const mostLooks = 5

/**
 * Makes the job that pushes the rows of the audit trail to each receiver. It runs every ten seconds, and after a failure
 * with a growing wait. It also runs at each startup and reload, which may have changed the receivers.
 */
export const pushHandler = (
  { jobs }: Pick<Config, "jobs">,
  { all }: AuditReceivers["Service"]
): AnyHandler<Database, JobFailure> =>
  handler<"audit_push", Database, JobFailure>({
    kind: "audit_push",
    subjects: all.map(({ name }) => ({ key: name, payload: { receiver: name } })),
    reachSeconds: longestPushWait,
    budgetMillis: ({ receiver: name }) => {
      const receiver = all.find((one) => one.name === name)
      return receiver === undefined ? jobs.lease_seconds * 1000 : passBudgetMillis(receiver)
    },
    run: ({ receiver: name }, { attempts }) => {
      const receiver = all.find((one) => one.name === name)
      if (receiver === undefined) {
        return Effect.succeed(
          attempts < mostLooks
            ? Retry(new TargetNotServed({ scope: "audit", target: name }))
            : Done({ commit: afterCommit(emit("audit_push_retired", { receiver: name })) })
        )
      }
      return Effect.gen(function*() {
        const result = yield* Effect.result(pushRows(receiver))
        const now = yield* currentSeconds
        if (result._tag === "Failure") {
          return Retry(new DatabaseFailed({ detail: result.failure.message }), { atMost: 60 })
        }
        const { hasMore, waitSeconds = everySeconds } = result.success
        return Reschedule(hasMore ? now : now + waitSeconds)
      })
    },
    abandon: () => Effect.void
  })
