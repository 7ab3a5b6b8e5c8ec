import * as Effect from "effect/Effect"
import { shown } from "../../../domain/JobFailure.ts"
import { readWhole } from "../../../domain/WholeNumber.ts"
import { jobKinds } from "../../../domain/words/JobKind.ts"
import { saidOfEvent } from "../../../domain/words/meanings/EventMeanings.ts"
import type { Said } from "../../../domain/words/meanings/Meaning.ts"
import * as workers from "../../../engine/queue/Workers.ts"
import { atPrimary } from "../../../engine/sql/Lag.ts"
import { currentSeconds, rfc3339 } from "../../../engine/Time.ts"
import { errorShown } from "../../../operations/operator/JobErrorText.ts"
import * as jobs from "../../../operations/operator/Jobs.ts"
import { jobDetailObject, jobObject, workerObject } from "../../../operations/operator/Objects.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { perform } from "../../operator/Act.ts"
import { cancelJob, listJobs, runJob, runJobs } from "../../operator/acts/JobActs.ts"
import { JobStatus } from "../../operator/schemas/OrderSchemas.ts"
import type { Filter } from "../Listing.ts"
import { listView, urlOf, windowOf } from "../Listing.ts"
import { looked, submitted } from "../PanelActs.ts"
import { field } from "../PanelForm.ts"
import { orRefused } from "../PanelLists.ts"
import { forRole, laggingPage, moved, page } from "../Route.ts"

/* The pages about the queue. */

const filters: ReadonlyArray<Filter> = [
  { name: "kind", label: "Kind", kind: "choice", words: jobKinds },
  { name: "status", label: "Status", kind: "choice", words: JobStatus.literals },
  { name: "orderId", label: "Order", kind: "text", hint: "id" }
]

/** Returns whether a job can still change by itself. */
const isLive = ({ status }: { readonly status: string }): boolean => status === "ready" || status === "running"

/** Returns what the last error of a job means. An error before a success or a cancellation means nothing any more. */
const saidOfError = (status: string): Said | undefined =>
  status === "failed"
    ? saidOfEvent("job_run_abandoned")
    : status === "ready"
    ? saidOfEvent("job_run_retried")
    : undefined

/**
 * Returns the queue by kind. The page shows since when the oldest job has been due, not for how long, because an age
 * would differ at each poll.
 */
const queue = (now: number) =>
  Effect.map(jobs.queue, (kinds) => {
    const sum = (of: "ready" | "running" | "failed") => kinds.reduce((all, kind) => all + kind[of], 0)
    return {
      queue: kinds.map(({ oldestReadySeconds: age, ...counts }) => ({
        ...counts,
        ...(age > 0 ? { dueSince: rfc3339(now - age) } : {})
      })),
      ready: sum("ready"),
      running: sum("running"),
      failed: sum("failed")
    }
  })

/** The highest number of errors that the page shows. A single job can be run on its own page. */
const mostShown = 5

const countIn = (query: URLSearchParams, name: string): number => readWhole(query.get(name) ?? "") ?? 0

/** Returns the routes of the pages about jobs. */
export const jobRoutes = (config: Config) => [
  laggingPage("/ui/jobs", (given) =>
    Effect.gen(function*() {
      const { query } = given
      const { items, problem, total } = yield* orRefused(looked(listJobs, given))
      const now = yield* currentSeconds
      // The summary and the processes show the present, so both are read from the primary.
      const summary = yield* atPrimary(queue(now))
      const lastDone = summary.queue.length > 0
        ? undefined
        : (yield* jobs.list({ status: "done" }, { limit: 1, offset: 0 })).items[0]
      const errors = yield* jobs.errors(mostShown)
      const processes = (yield* atPrimary(workers.list)).map((worker) => workerObject(worker, now))
      return page("jobs", "Jobs", {
        rows: items,
        problem,
        ...summary,
        lastDone: lastDone === undefined ? undefined : jobObject(lastDone),
        errors: errors.filter((one) => one.jobs > 1).map(({ error, ...one }) => ({
          ...one,
          error: errorShown(one.kind, error)
        })),
        done: query.get("done") ?? "",
        ran: { due: countIn(query, "due"), refused: countIn(query, "refused"), remaining: countIn(query, "remaining") },
        hasWorker: processes.some(({ roles, stale }) => roles.includes("worker") && !stale),
        list: listView("/ui/jobs", query, filters, { total, limit: windowOf(query, config).limit, shown: items.length })
      }, { isLive: items.some(isLive), ...(problem === undefined ? {} : { status: problem.status }) })
    })),
  laggingPage("/ui/jobs/{id}", ({ parameters: { id = "" }, query }) =>
    Effect.gen(function*() {
      const found = yield* jobs.detailOf(yield* jobs.find(id))
      const now = yield* currentSeconds
      return page("job", `Job ${id}`, {
        job: jobDetailObject(config, found, now),
        said: saidOfError(found.job.status),
        isDue: found.job.status === "ready" && found.job.runAt <= now,
        endsOrder: jobs.endsOrder(found.job),
        leftOut: jobs.leftOut(found.job),
        done: query.get("done") ?? ""
      }, { isLive: isLive(found.job) })
    })),
  forRole("operator")(
    "POST",
    "/ui/jobs/{id}/run",
    (given) => Effect.map(submitted(runJob, given), ({ id }) => moved(`/ui/jobs/${id}?done=advanced`))
  ),
  forRole("operator")("POST", "/ui/jobs/run-alike", ({ form }) =>
    Effect.gen(function*() {
      const { kind, lastError = "" } = yield* jobs.find(field(form, "id") ?? "")
      const { due, refused, remaining } = yield* perform(runJobs, { kind, error: shown(lastError) })
      const counts = { due: String(due), refused: String(refused.length), remaining: String(remaining) }
      return moved(urlOf("/ui/jobs", { done: "due", ...counts }))
    })),
  forRole("operator")(
    "POST",
    "/ui/jobs/{id}/cancel",
    (given) => Effect.map(submitted(cancelJob, given), ({ id }) => moved(`/ui/jobs/${id}?done=cancelled`))
  )
]
