import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { OrderId } from "../../../domain/Id.ts"
import { operatorProblemOf } from "../../../domain/OperatorProblem.ts"
import { jobKinds } from "../../../domain/words/JobKind.ts"
import type { JobRecord } from "../../../engine/queue/JobRecords.ts"
import * as workers from "../../../engine/queue/Workers.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { Activity } from "../../../operations/operator/Activity.ts"
import * as jobs from "../../../operations/operator/Jobs.ts"
import { jobDetailObject, jobObject, workerObject } from "../../../operations/operator/Objects.ts"
import { renderTable } from "../../cli/TextTable.ts"
import { act, noun } from "../Act.ts"
import { Acting, Configured, paged } from "../Acting.ts"
import { id, key, openWord, optional, paging, textOf, word } from "../Field.ts"
import { Id, Int, intOf, pageOf, Time } from "../schemas/Common.ts"
import { Job, JobDetail, JobStatus } from "../schemas/OrderSchemas.ts"

/* Declares the acts about jobs, and about the processes that run them. */

const job = key("The id of the job.")

const detailOf = (found: JobRecord) =>
  Effect.gen(function*() {
    return jobDetailObject(yield* Configured.config, yield* jobs.detailOf(found), yield* currentSeconds)
  })

/** Lists jobs. */
export const listJobs = act({
  id: "listJobs",
  does: "List jobs, newest first",
  access: "viewer",
  mayLag: true,
  input: {
    kind: optional(
      openWord(jobKinds, "The kind of the job. A kind of another version of the service is accepted if a job has it.")
    ),
    status: optional(word(JobStatus.literals, "The status of the job.")),
    orderId: optional(id("The id of an order. Finds the jobs of the order and of its challenges.")),
    ...paging
  },
  output: pageOf(Job),
  errors: [],
  run: ({ kind, orderId, status, ...window }) =>
    Effect.gen(function*() {
      yield* jobs.checkKind(kind)
      const filters = { kind, status, orderId: orderId === undefined ? undefined : OrderId(orderId) }
      return yield* paged(window, (window) => jobs.list(filters, window), jobObject)
    }),
  http: { route: "GET /api/jobs" },
  cli: {
    command: "jobs list",
    example: "jobs list --status failed",
    columns: ({ attempts, dedupKey, id, kind, lastError = "", maxAttempts, runAt, status }) => ({
      id,
      kind,
      status,
      attempts: `${attempts}/${maxAttempts}`,
      due: runAt,
      about: dedupKey,
      "last error": lastError
    })
  }
})

const readJob = act({
  id: "readJob",
  does: "Show a job, without the CSR it may carry",
  access: "viewer",
  mayLag: true,
  input: { id: job },
  output: JobDetail,
  errors: [],
  run: ({ id }) => Effect.flatMap(jobs.find(id), detailOf),
  http: { route: "GET /api/jobs/{id}" },
  cli: {
    command: "jobs show",
    example: "jobs show ID",
    members: (job) => ({
      id: job.id,
      kind: job.kind,
      status: job.status,
      about: job.dedupKey,
      order: job.orderId,
      upstreamOrder: job.upstreamOrder?.upstreamOrderUrl,
      attempts: `${job.attempts} of ${job.maxAttempts}`,
      due: job.runAt,
      deadline: job.deadline,
      leaseUntil: job.leaseUntil,
      leaseOwner: job.leaseOwner,
      lastError: job.lastError,
      created: job.createdAt,
      changed: job.updatedAt,
      payload: JSON.stringify(job.payload)
    })
  }
})

const aboutOf = ({ dedupKey, kind }: { readonly dedupKey: string; readonly kind: string }): string =>
  `the ${kind} job about ${dedupKey}`

/** Cancels a job. */
export const cancelJob = act({
  id: "cancelJob",
  does: "Cancel a job; an order that waits for it becomes invalid",
  access: "operator",
  input: { id: job },
  output: JobDetail,
  errors: ["job_not_cancellable"],
  run: ({ id }) =>
    Effect.gen(function*() {
      return yield* detailOf(yield* jobs.cancel(yield* Acting.operator, id))
    }),
  http: { route: "POST /api/jobs/{id}/cancel" },
  cli: {
    command: "jobs cancel",
    help: "Cancel a job that waits or has failed.",
    example: "jobs cancel ID",
    confirm: ({ id }) =>
      Effect.map(
        jobs.find(id),
        (job) => `Cancel ${aboutOf(job)}${jobs.endsOrder(job) ? "; its order becomes invalid" : ""}?`
      ),
    text: (job) => `Cancelled ${aboutOf(job)}.`
  }
})

/** Makes a job run now. */
export const runJob = act({
  id: "runJob",
  does: "Run a job now; a failed job gets one more attempt",
  access: "operator",
  input: { id: job },
  output: JobDetail,
  errors: ["job_not_runnable"],
  run: ({ id }) =>
    Effect.gen(function*() {
      return yield* detailOf(yield* jobs.runNow(yield* Acting.operator, id))
    }),
  http: { route: "POST /api/jobs/{id}/run" },
  cli: {
    command: "jobs run-now",
    help: "Run a waiting job now, or give a failed job another attempt.",
    example: "jobs run-now ID",
    text: ({ dedupKey, kind }) => `The ${kind} job about ${dedupKey} is due now.`,
    remark: jobs.leftOut
  }
})

/** Makes all jobs with the same error run now. */
export const runJobs = act({
  id: "runJobs",
  does: `Run all jobs of a kind with the same error now, at most ${jobs.mostAlike} at once`,
  access: "operator",
  input: {
    kind: openWord(jobKinds, "The kind of the jobs."),
    error: textOf({
      description: "The last error of the jobs, as lists of jobs show it.",
      shown: "text",
      takes: "a text without control characters",
      // An error may have several lines.
      read: (text) => text.trim() === "" || /[^\P{Cc}\t\n\r]/u.test(text) ? undefined : text
    })
  },
  output: Schema.Struct({
    due: intOf("How many jobs are due now."),
    refused: Schema.Array(Schema.Struct({ id: Id, error: Schema.String, message: Schema.String })),
    remaining: intOf(`How many more jobs have this error. Each request runs at most ${jobs.mostAlike}.`)
  }).annotate({ identifier: "JobsRun" }),
  errors: [],
  run: ({ error, kind }) =>
    Effect.gen(function*() {
      const { refused, ...counts } = yield* jobs.runAlike(yield* Acting.operator, kind, error)
      return {
        ...counts,
        refused: refused.map(({ id, refused }) => {
          const { code, message } = operatorProblemOf(refused)
          return { id, error: code, message }
        })
      }
    }),
  http: { route: "POST /api/jobs/run" },
  cli: {
    command: "jobs run-all",
    help: "Run all jobs of a kind with the same last error now, if they have failed or wait for another attempt.",
    example: "jobs run-all --kind signer_issue --error ERROR",
    confirm: ({ error, kind }) =>
      Effect.map(jobs.findAlike(kind, error), ({ total }) =>
        total === 0
          ? undefined
          : `Run ${Math.min(total, jobs.mostAlike)} ${kind} job(s) with this error now?`),
    text: ({ due, remaining }) =>
      `${due} job(s) are due now.${remaining > 0 ? ` ${remaining} more have this error; run the command again.` : ""}`,
    faults: ({ refused }) => refused.map(({ message }) => ({ code: 3 as const, message }))
  }
})

const readQueue = act({
  id: "readQueue",
  does: "Count the jobs of each kind",
  access: "viewer",
  input: {},
  output: Schema.Struct({
    kinds: Schema.Array(Schema.Struct({
      kind: Schema.String,
      ready: Int,
      running: Int,
      failed: Int,
      oldestReadySeconds: intOf("The age of the oldest job that is due; 0 if none is due.")
    })),
    ready: Int,
    running: Int,
    failed: Int
  }).annotate({ identifier: "Queue" }),
  errors: [],
  run: () =>
    Effect.map(Effect.flatMap(Activity, ({ queue }) => queue), (kinds) => {
      const sum = (of: "ready" | "running" | "failed") => kinds.reduce((all, kind) => all + kind[of], 0)
      return { kinds, ready: sum("ready"), running: sum("running"), failed: sum("failed") }
    }),
  http: { route: "GET /api/queue" },
  cli: {
    command: "jobs queue",
    example: "jobs queue --json",
    // An earlier version of this command printed a list with `items`, `total`, `limit` and `offset`. The next release
    // removes these members.
    json: (queue) => ({
      ...queue,
      items: queue.kinds,
      total: queue.kinds.length,
      limit: queue.kinds.length,
      offset: 0
    }),
    text: ({ kinds }) =>
      renderTable(
        ["kind", "ready", "running", "failed", "oldest due"],
        kinds.map(({ failed, kind, oldestReadySeconds, ready, running }) => [
          kind,
          String(ready),
          String(running),
          String(failed),
          `${oldestReadySeconds} s`
        ]),
        kinds.length
      )
  }
})

const listWorkers = act({
  id: "listWorkers",
  does: "List the processes of this service",
  access: "viewer",
  input: {},
  output: pageOf(
    Schema.Struct({
      owner: Schema.String,
      roles: Schema.Array(Schema.String),
      version: Schema.String,
      startedAt: Time,
      lastSeenAt: Time,
      stale: Schema.Boolean.annotate({ description: "It was not seen for 30 seconds." }),
      failing: Schema.Array(Schema.String).annotate({ description: "Its background loops that keep failing." })
    }).annotate({ identifier: "Worker" })
  ),
  errors: [],
  run: () =>
    Effect.zipWith(workers.list, currentSeconds, (found, now) => {
      const items = found.map((worker) => workerObject(worker, now))
      return { items, total: items.length, limit: items.length, offset: 0 }
    }),
  http: { route: "GET /api/workers" },
  cli: {
    command: "worker list",
    help: "List the processes that serve this database.",
    example: "worker list --json",
    columns: ({ failing, lastSeenAt, owner, roles, stale, startedAt, version }) => ({
      owner,
      roles: roles.join(),
      version,
      started: startedAt,
      "last seen": stale
        ? `${lastSeenAt} (stale)`
        : failing.length > 0
        ? `${lastSeenAt} (keeps failing: ${failing.join(", ")})`
        : lastSeenAt
    }),
    remark: ({ total }) => total === 0 ? "No process has served this database in the last ten minutes." : undefined
  }
})

/** The acts about the queue. */
export const jobActs = noun({
  name: "jobs",
  description: "Jobs, and the processes that run them.",
  commands: { jobs: "Jobs in the queue.", worker: "Processes of the service." },
  acts: [listJobs, readJob, cancelJob, runJob, runJobs, readQueue, listWorkers]
})
