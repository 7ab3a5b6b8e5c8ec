import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { isId, OrderId } from "../../domain/Id.ts"
import { Cancelled, shown } from "../../domain/JobFailure.ts"
import { JobNotCancellable, JobNotRunnable, NoSuch, UnknownWord } from "../../domain/OperatorError.ts"
import { cancelJob, decodePayload, jobKinds, signingKinds } from "../../domain/words/JobKind.ts"
import { emit } from "../../domain/words/Log.ts"
import { JobId } from "../../engine/queue/Job.ts"
import * as jobRecords from "../../engine/queue/JobRecords.ts"
import type { JobRecord } from "../../engine/queue/JobRecords.ts"
import { transaction } from "../../engine/sql/Database.ts"
import { kept } from "../../engine/sql/KeptCounts.ts"
import { currentSeconds } from "../../engine/Time.ts"
import * as audit from "../../store/AuditRows.ts"
import * as jobErrors from "../../store/jobs/JobErrors.ts"
import type { JobFilters } from "../../store/jobs/JobSearch.ts"
import * as jobSearch from "../../store/jobs/JobSearch.ts"
import * as digests from "../../store/notify/Digests.ts"
import * as orderLookup from "../../store/orders/OrderLookup.ts"
import * as orderSearch from "../../store/orders/OrderSearch.ts"
import * as upstreamOrderRecords from "../../store/upstream/UpstreamOrderRecords.ts"
import type { Operator } from "../Operator.ts"
import { actorFields, actorOf } from "../Operator.ts"
import * as issuance from "../work/Issuance.ts"
import * as orphans from "../work/OrphanedCertificates.ts"
import * as relaying from "../work/Relaying.ts"
import * as signerRevocation from "../work/SignerRevocation.ts"
import * as verdicts from "../work/Verdicts.ts"
import { errorShown } from "./JobErrorText.ts"
import { readForOperator } from "./OperatorReads.ts"

/** Finds one job. */
export const find = Effect.fn("Jobs.find")(function*(id: string) {
  const job = isId(id) ? yield* jobRecords.find(JobId(id)) : undefined
  return job ?? (yield* new NoSuch({ noun: "job", id }))
})

/** Returns the order that a job is about, directly or through one of the order's challenges. */
const orderIdOf = Effect.fnUntraced(function*({ dedupKey }: JobRecord) {
  if (!isId(dedupKey)) return undefined
  const order = yield* orderSearch.findRecord(OrderId(dedupKey))
  return order?.id ?? (yield* orderLookup.findByChallenge(dedupKey))?.orderId
})

/** Returns a job with the order that it is about, and with the upstream's state of that order, if they exist. */
export const detailOf = Effect.fn("Jobs.detailOf")(function*(job: JobRecord) {
  const orderId = yield* orderIdOf(job)
  const upstreamOrder = orderId === undefined ? undefined : yield* upstreamOrderRecords.find(orderId)
  return { job, orderId, upstreamOrder }
})

/** The result of {@link detailOf}. */
export type JobDetail = Effect.Success<ReturnType<typeof detailOf>>

/** Returns a page of jobs, newest first, and the number of matches. */
export const list = (filters: JobFilters, page: { readonly limit: number; readonly offset: number }) =>
  readForOperator(Effect.all({ items: jobSearch.search(filters, page), total: jobSearch.countMatches(filters) }))

/**
 * Refuses a kind that this version does not know and that no job has. An empty list would suggest that there are no
 * open jobs of this kind.
 */
export const checkKind = Effect.fn("Jobs.checkKind")(function*(kind: string | undefined) {
  if (kind === undefined || jobKinds.some((known) => known === kind)) return
  if ((yield* readForOperator(jobSearch.countMatches({ kind }))) > 0) return
  return yield* new UnknownWord({ name: "kind", word: kind.slice(0, 64), known: jobKinds })
})

/** Returns whether cancelling this job also ends its order. This is so for a waiting job of certain kinds. */
export const endsOrder = ({ kind, status }: JobRecord): boolean =>
  status === "ready" && (kind === "challenge_validate" || signingKinds.some((one) => one === kind))

const byOperator = new Cancelled()

/** Runs the abandon step for the kind of a waiting job, as the queue does when it gives a job up. */
const abandon = (job: JobRecord, operator: Operator) => {
  if (job.kind === "signer_issue" || job.kind === "signer_issue_restricted") {
    const payload = decodePayload(job.kind, job.payload)
    return payload === undefined ? Effect.void : issuance.abandon(payload, byOperator, actorOf(operator))
  }
  if (job.kind === "signer_relay_issue" || job.kind === "signer_relay_issue_restricted") {
    const payload = decodePayload(job.kind, job.payload)
    return payload === undefined ? Effect.void : relaying.abandon(payload, byOperator, actorOf(operator))
  }
  if (job.kind === "signer_revoke") {
    const payload = decodePayload(job.kind, job.payload)
    return payload === undefined
      ? Effect.void
      : signerRevocation.abandon(payload, byOperator, job.id, actorOf(operator))
  }
  if (job.kind === "orphan_revoke") {
    const payload = decodePayload(job.kind, job.payload)
    return payload === undefined ? Effect.void : orphans.abandon(payload, byOperator, actorOf(operator))
  }
  if (job.kind !== "challenge_validate") return Effect.void
  const payload = decodePayload(job.kind, job.payload)
  return payload === undefined ? Effect.void : verdicts.abandon(payload, byOperator)
}

const changed = (
  event: "job_cancelled" | "job_advanced",
  operator: Operator,
  { dedupKey, id, kind }: JobRecord,
  orderId: OrderId | undefined
) => audit.insert({ event, ...actorOf(operator), orderId, detail: { kind, job_id: id, subject: dedupKey } })

const tries = 5

/**
 * Cancels a job that waits or has failed. A waiting job is given up according to the rules of its kind: its order, if
 * any, becomes `invalid`. The order of a failed job has already ended and is not changed
 * (docs/contribute/decisions/job-outcomes.md, "Giving up").
 */
export const cancel = Effect.fn("Jobs.cancel")(function*(operator: Operator, id: string) {
  for (let left = tries;; left--) {
    const job = yield* find(id)
    if (job.status !== "ready" && job.status !== "failed") {
      return yield* new JobNotCancellable({ id, status: job.status })
    }
    const now = yield* currentSeconds
    const orderId = yield* orderIdOf(job)
    // As everywhere, the job row is written last. If a worker has claimed the job in the meantime, the earlier writes
    // are rolled back.
    const cancelled = yield* transaction(Effect.gen(function*() {
      if (job.status === "ready") yield* abandon(job, operator)
      yield* Effect.filterOrFail(
        cancelJob(job.id, job.status, now),
        (row) => row !== undefined,
        () => new TakenUp()
      )
      yield* changed("job_cancelled", operator, job, orderId)
    })).pipe(Effect.as(true), Effect.catchTag("TakenUp", () => Effect.succeed(false)))
    if (cancelled) {
      yield* emit("admin_job_cancelled", { ...actorFields(operator), kind: job.kind, job_id: id })
      return yield* find(id)
    }
    if (left === 0) return yield* new JobNotCancellable({ id, status: "running" })
  }
})

class TakenUp extends Data.TaggedError("TakenUp") {}

/**
 * Forgets when the last digest was sent. Otherwise a digest that was sent in this interval would prevent the next
 * digest.
 */
const again = ({ dedupKey, kind }: JobRecord) =>
  kind === "notify_expiry_digest" ? digests.forget(dedupKey) : Effect.void

/**
 * What a job of one of these kinds leaves out when an operator makes it run at once: it does not repeat what was done
 * recently.
 */
const leavesOut: { readonly [kind: string]: string } = {
  notify_expiry_reminders:
    "A contact who got a mail about a certificate within the last week gets no second mail about it.",
  authority_expiry: "A receiver that got a message about a threshold of a CA does not get it again.",
  upstream_renewals: "An upstream is asked about a certificate only after the time that the upstream named."
}

/** Returns a sentence about what this job leaves out if it runs now, or undefined if it leaves out nothing. */
export const leftOut = ({ kind }: { readonly kind: string }): string | undefined => leavesOut[kind]

/** Makes a waiting job run at once, and gives a failed job one more attempt. A digest is sent again. */
export const runNow = Effect.fn("Jobs.runNow")(function*(operator: Operator, id: string) {
  const job = yield* find(id)
  const now = yield* currentSeconds
  if (job.status === "ready" && job.runAt <= now) return yield* Effect.as(again(job), job)
  const move = job.status === "ready"
    ? jobRecords.advance(job.id, now)
    : job.status === "failed"
    ? jobRecords.onceMore(job.id, now)
    : Effect.succeed(undefined)
  const orderId = yield* orderIdOf(job)
  const row = changed("job_advanced", operator, job, orderId)
  const moved = yield* audit.changing(move, Effect.andThen(again(job), row))
  if (moved === undefined) return yield* new JobNotRunnable({ id, status: (yield* find(id)).status })
  yield* emit("admin_job_advanced", { ...actorFields(operator), kind: job.kind, job_id: id })
  return yield* find(id)
})

/** The highest number of jobs that are run at once. */
export const mostAlike = 1000

/** More different errors than this are not compared. */
const mostErrors = 10_000

/**
 * Returns the errors that most jobs have, with the number of jobs that have each. If many jobs have them, the result may
 * be slightly out of date ({@link kept}).
 */
export const errors = (limit: number) =>
  readForOperator(kept(
    `job_errors ${limit}`,
    (found: ReadonlyArray<jobErrors.JobError>) => found.reduce((all, { jobs }) => all + jobs, 0),
    Effect.flatMap(currentSeconds, (now) => jobErrors.errorsOf(undefined, now, limit))
  ))

/**
 * Returns the jobs of a kind that have failed with this error, or wait for another attempt after it, and how many there
 * are. At most {@link mostAlike} jobs are returned. The error is the text that operators see.
 */
export const findAlike = Effect.fn("Jobs.findAlike")(function*(kind: string, error: string) {
  yield* checkKind(kind)
  const now = yield* currentSeconds
  return yield* readForOperator(Effect.gen(function*() {
    const known = yield* jobErrors.errorsOf(kind, now, mostErrors)
    const meant = known.filter((one) => shown(one.error) === error || errorShown(kind, one.error) === error)
    const ids = yield* jobErrors.alike(kind, meant.map((one) => one.error), now, mostAlike)
    return { ids, total: Math.max(ids.length, meant.reduce((all, { jobs }) => all + jobs, 0)) }
  }))
})

/**
 * Makes every job of {@link findAlike} run at once. A job that has begun or ended in the meantime is refused, which does
 * not stop the others.
 */
export const runAlike = Effect.fn("Jobs.runAlike")(function*(operator: Operator, kind: string, error: string) {
  const { ids, total } = yield* findAlike(kind, error)
  const results = yield* Effect.forEach(ids, (id) =>
    runNow(operator, id).pipe(
      Effect.as(undefined),
      Effect.catchTag(["JobNotRunnable", "NoSuch"], (refused) => Effect.succeed({ id, refused }))
    ))
  const refused = results.filter((one) => one !== undefined)
  return { due: ids.length - refused.length, refused, remaining: total - ids.length }
})

/**
 * Returns the state of the queue for each kind: the numbers of waiting, running and failed rows, and the age in seconds
 * of the oldest due row.
 */
export const queue = readForOperator(Effect.gen(function*() {
  const now = yield* currentSeconds
  const counts = yield* jobRecords.counts
  const oldest = new Map(
    (yield* jobRecords.oldest(now)).map(({ kind, runAt }) => [kind, Math.min(now - runAt, Number.MAX_SAFE_INTEGER)])
  )
  return [...new Set(counts.map(({ kind }) => kind))].map((kind) => {
    const of = (status: string) => counts.find((row) => row.kind === kind && row.status === status)?.count ?? 0
    return {
      kind,
      ready: of("ready"),
      running: of("running"),
      failed: of("failed"),
      oldestReadySeconds: oldest.get(kind) ?? 0
    }
  })
}))
