import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { shown } from "../../../domain/JobFailure.ts"
import { NoSuch } from "../../../domain/OperatorError.ts"
import { parseReason, revocationReasons } from "../../../domain/RevocationReason.ts"
import type { JobId } from "../../../engine/queue/Job.ts"
import { settledJob } from "../../../engine/queue/Waits.ts"
import { currentMillis } from "../../../engine/Time.ts"
import * as orders from "../../../operations/operator/OrderRecords.ts"
import type { Fault } from "../Act.ts"
import { also } from "../Act.ts"
import { Acting, Configured } from "../Acting.ts"
import { code, optional, whole } from "../Field.ts"
import { Id } from "../schemas/Common.ts"

/* The parts that all acts that revoke share: the reason, the sentences, and how their commands wait. */

const numbers = "0 to 6 and 8 to 10"
const names = revocationReasons.map(({ name }) => name).join(", ")

/** The reason of a revocation. */
export const reason = optional(
  code({
    description: `A reason of RFC 5280, by its number, ${numbers}, or its name.`,
    help: `A reason of RFC 5280, by its number, ${numbers}, or its name. One of ${names}.`,
    shown: "reason",
    takes: `a number, ${numbers}, or a name, one of ${names}`,
    read: parseReason
  })
)

/**
 * A revocation that has been recorded here or requested from a signer. `job` signs the list of this CA, or sends the
 * request to the signer.
 */
export interface Begun {
  readonly isRevoked: boolean
  readonly job: JobId
}

/** The answer if an external signer has not answered yet. */
export const Queued = Schema.Struct({ status: Schema.Literal("queued"), job: Id }).annotate({ httpApiStatus: 202 })

/**
 * Begins to revoke the certificate of an order. A refused configuration is not used, because it does not reliably show
 * who signs for a profile.
 */
export const begin = Effect.fnUntraced(function*(id: string, reason: number | undefined) {
  const operator = yield* Acting.operator
  return yield* orders.revoke(yield* Configured.served, operator, id, reason).pipe(
    Effect.catchTag("NoSuch", (error) =>
      error.hint === undefined || operator.kind !== "cli"
        ? error
        : new NoSuch({ ...error, hint: `${error.hint} The command cert revoke takes serial numbers.` }))
  )
})

/** The sentences for the two ways to revoke, and the number of seconds that a command waits by default. */
const ways = {
  list: {
    begun: (job: string) => `Revoked. Job ${job} signs the revocation list.`,
    ended: "The revocation list is signed.",
    usualWait: 0
  },
  signer: {
    begun: (job: string) => `Job ${job} asks the signer to revoke the certificate.`,
    ended: "Revoked.",
    usualWait: 30
  }
}

const wayOf = ({ isRevoked }: Begun) => isRevoked ? ways.list : ways.signer

/** Returns a sentence about a revocation that has begun. */
export const begunText = (begun: Begun): string => wayOf(begun).begun(begun.job)

/** Waits for a job until a time in epoch milliseconds, says how the job ended, and returns what failed. */
const waited = Effect.fnUntraced(function*(
  begun: Begun,
  until: number,
  say: (line: string) => Effect.Effect<void>
) {
  const job = yield* settledJob(begun.job, Math.max(0, until - (yield* currentMillis)))
  if (job?.status === "failed" || job?.status === "cancelled") {
    const why = job.lastError === undefined ? "" : `: ${shown(job.lastError)}`
    return [{ code: 1, message: `Job ${job.id} is ${job.status}${why}` }] satisfies ReadonlyArray<Fault>
  }
  yield* say(
    job?.status === "done" || (job === undefined && begun.isRevoked)
      ? wayOf(begun).ended
      : `Job ${job?.id ?? begun.job} has not ended yet. Is a worker running?`
  )
  return []
})

/**
 * Declares `--wait`, which waits for the jobs of all revocations together. If a job fails or is cancelled, the command
 * fails at the end, after it has waited for the other jobs too.
 */
export const waitingFor = <Out>(begunOf: (output: Out) => ReadonlyArray<Begun>) =>
  also({
    flags: {
      wait: optional(
        whole("Seconds to wait until the list is signed (default 0) or the signer has answered (default 30).", {
          least: 0,
          most: 86_400,
          of: "a number of seconds"
        })
      )
    },
    after: Effect.fnUntraced(function*({ wait }, output: Out, say) {
      const started = yield* currentMillis
      // The certificates of one CA share one job.
      const jobs = [...new Map(begunOf(output).map((one) => [one.job, one])).values()]
      const faults = yield* Effect.forEach(jobs, (one) => {
        const seconds = wait ?? wayOf(one).usualWait
        return seconds <= 0 ? Effect.succeed([]) : waited(one, started + seconds * 1000, say)
      })
      return faults.flat()
    })
  })
