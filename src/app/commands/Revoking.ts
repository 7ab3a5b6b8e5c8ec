import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { shown } from "../../domain/JobFailure.ts"
import type { JobId } from "../../kernel/queue/Job.ts"
import { settledJob } from "../../kernel/queue/Waits.ts"
import { currentMillis } from "../../kernel/Time.ts"
import { CommandFailed } from "../CommandFailed.ts"
import { numberFlag, optional } from "./Flags.ts"

/* What the commands that revoke have in common: what they say, and how they wait. */

/** A revocation that was recorded, or asked of a signer: `job` signs the list, or asks the signer. */
export interface Begun {
  readonly isRevoked: boolean
  readonly job: JobId
}

/** The messages for the two ways to revoke, and the default seconds to wait. */
const saidOf = {
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

const wordsOf = ({ isRevoked }: Begun) => isRevoked ? saidOf.list : saidOf.signer

/** `--wait`. */
export const waitOption = optional(
  numberFlag("wait", { least: 0, most: 86_400, of: "a number of seconds" }),
  "Seconds to wait until the list is signed (default 0) or the signer has answered (default 30)."
)

/** What a revocation has begun, as a sentence. */
export const begunText = (begun: Begun): string => wordsOf(begun).begun(begun.job)

/** Waits for one job until a time in epoch milliseconds, says how it ended, and answers what went wrong. */
const ended = Effect.fnUntraced(function*(begun: Begun, until: number) {
  const job = yield* settledJob(begun.job, Math.max(0, until - (yield* currentMillis)))
  if (job?.status === "failed" || job?.status === "cancelled") {
    const why = job.lastError === undefined ? "" : `: ${shown(job.lastError)}`
    return [`Job ${job.id} is ${job.status}${why}`]
  }
  yield* Console.log(
    job?.status === "done" || (job === undefined && begun.isRevoked)
      ? wordsOf(begun).ended
      : `Job ${job?.id ?? begun.job} has not ended yet. Is a worker running?`
  )
  return []
})

/**
 * Waits for the jobs of revocations, for all of them together as long as `--wait` says. Fails with code 1 if one of them
 * failed or was cancelled, after it has looked at the others.
 */
export const awaitEnds = Effect.fnUntraced(function*(begun: ReadonlyArray<Begun>, wait: number | undefined) {
  const started = yield* currentMillis
  // The certificates of one CA have one job.
  const jobs = [...new Map(begun.map((one) => [one.job, one])).values()]
  const faults = yield* Effect.forEach(jobs, (one) => {
    const seconds = wait ?? wordsOf(one).usualWait
    return seconds <= 0 ? Effect.succeed([]) : ended(one, started + seconds * 1000)
  })
  const [fault, ...others] = faults.flat()
  if (fault !== undefined) return yield* new CommandFailed({ code: 1, message: [fault, ...others].join("\n") })
})
