import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { jobKinds } from "../../kernel/queue/Job.ts"
import * as workers from "../../kernel/queue/Workers.ts"
import { currentSeconds } from "../../kernel/Time.ts"
import * as jobs from "../../operations/Jobs.ts"
import { jobDetailObject, jobObject, workerObject } from "../../operations/Objects.ts"
import { jobFilters, jobStatuses, wordOf } from "../../operations/RecordFilters.ts"
import { renderJob } from "../../surfaces/cli/JobText.ts"
import { renderTable } from "../../surfaces/cli/TextTable.ts"
import { Operator } from "../CommandOperator.ts"
import { Confirmation } from "../Confirmation.ts"
import { withRecords } from "../Records.ts"
import { Settings } from "../Settings.ts"
import { command } from "./Descriptor.ts"
import { jsonOption, optionalText, optionalWord, pageOptions } from "./Flags.ts"
import { print } from "./Print.ts"

const idArgument = Argument.String("id").pipe(Argument.withDescription("The job's id."))

const listCommand = command(
  "list",
  "List jobs, newest first. Example: acme-svc jobs list --status failed. Exit codes: 0, 1, 3.",
  {
    kind: optionalWord("kind", jobKinds),
    status: optionalWord("status", jobStatuses),
    orderId: optionalText("order-id", "Only jobs about this order or one of its challenges."),
    ...pageOptions,
    json: jsonOption
  },
  ({ json, kind, limit, offset, orderId, status }) =>
    withRecords(
      Effect.gen(function*() {
        yield* wordOf("kind", jobKinds, kind)
        const found = yield* jobs.list(yield* jobFilters({ kind, status, orderId }), { limit, offset })
        const items = found.items.map(jobObject)
        yield* print(json, { items, total: found.total, limit, offset }, () =>
          renderTable(
            ["id", "kind", "status", "attempts", "due", "about", "last error"],
            items.map(({ attempts, dedupKey, id, kind, lastError, maxAttempts, runAt, status }) => [
              id,
              kind,
              status,
              `${attempts}/${maxAttempts}`,
              runAt,
              dedupKey,
              lastError ?? ""
            ]),
            found.total
          ))
      })
    )
)

const showCommand = command(
  "show",
  "Show a job, without the CSR it may carry. Example: acme-svc jobs show ID. Exit codes: 0, 1, 3.",
  { id: idArgument, json: jsonOption },
  ({ id, json }) =>
    withRecords(
      Effect.gen(function*() {
        const config = yield* Settings.forRecords
        const found = yield* jobs.detailOf(yield* jobs.find(id))
        const job = jobDetailObject(config, found, yield* currentSeconds)
        yield* print(json, job, () => renderJob(job))
      })
    )
)

const cancelCommand = command(
  "cancel",
  "Cancel a job that waits or has failed. Example: acme-svc jobs cancel ID. Exit codes: 0, 1, 2, 3.",
  { id: idArgument },
  ({ id }) =>
    withRecords(
      Effect.gen(function*() {
        const job = yield* jobs.find(id)
        const about = `the ${job.kind} job about ${job.dedupKey}`
        const harm = jobs.endsOrder(job) ? "; its order becomes invalid" : ""
        yield* Confirmation.ask(`Cancel ${about}${harm}?`)
        yield* jobs.cancel(yield* Operator, id)
        yield* Console.log(`Cancelled ${about}.`)
      })
    )
)

const runNowCommand = command(
  "run-now",
  "Run a waiting job now, or give a failed job another attempt. Example: acme-svc jobs run-now ID. Exit codes: 0, 1, 3.",
  { id: idArgument },
  ({ id }) =>
    withRecords(
      Effect.gen(function*() {
        const job = yield* jobs.runNow(yield* Operator, id)
        yield* Console.log(`The ${job.kind} job about ${job.dedupKey} is due now.`)
        const leftOut = jobs.leftOut(job)
        if (leftOut !== undefined) yield* Console.error(leftOut)
      })
    )
)

const queueCommand = command(
  "queue",
  "Count the jobs of each kind. Example: acme-svc jobs queue --json. Exit codes: 0, 1, 3.",
  { json: jsonOption },
  ({ json }) =>
    withRecords(
      Effect.gen(function*() {
        const items = yield* jobs.queue
        yield* print(json, { items, total: items.length, limit: items.length, offset: 0 }, () =>
          renderTable(
            ["kind", "ready", "running", "failed", "oldest due"],
            items.map(({ failed, kind, oldestReadySeconds, ready, running }) => [
              kind,
              String(ready),
              String(running),
              String(failed),
              `${oldestReadySeconds} s`
            ]),
            items.length
          ))
      })
    )
)

/** `jobs`: the queue. */
export const jobsCommand = Command.make("jobs").pipe(
  Command.withDescription("Jobs in the queue."),
  Command.withSubcommands([
    listCommand,
    showCommand,
    cancelCommand,
    runNowCommand,
    queueCommand
  ])
)

const workerListCommand = command(
  "list",
  "List the processes that serve this database. Example: acme-svc worker list --json. Exit codes: 0, 1, 3.",
  { json: jsonOption },
  ({ json }) =>
    withRecords(
      Effect.gen(function*() {
        const now = yield* currentSeconds
        const items = (yield* workers.list).map((worker) => workerObject(worker, now))
        yield* print(json, { items, total: items.length, limit: items.length, offset: 0 }, () =>
          renderTable(
            ["owner", "roles", "version", "started", "last seen"],
            items.map(({ lastSeenAt, owner, roles, stale, startedAt, version }) => [
              owner,
              roles.join(),
              version,
              startedAt,
              stale ? `${lastSeenAt} (stale)` : lastSeenAt
            ]),
            items.length
          ))
        if (items.length === 0) yield* Console.error("No process has served this database in the last ten minutes.")
      })
    )
)

/** `worker`: processes of the service. */
export const workerCommand = Command.make("worker").pipe(
  Command.withDescription("Processes of the service."),
  Command.withSubcommands([workerListCommand])
)
