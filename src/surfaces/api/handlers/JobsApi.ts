import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { isId, OrderId } from "../../../domain/Id.ts"
import type { JobRecord } from "../../../kernel/queue/JobRecords.ts"
import * as workers from "../../../kernel/queue/Workers.ts"
import { currentSeconds } from "../../../kernel/Time.ts"
import { Activity } from "../../../operations/Activity.ts"
import * as jobs from "../../../operations/Jobs.ts"
import { jobDetailObject, jobObject, workerObject } from "../../../operations/Objects.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { Api } from "../Api.ts"
import { answering } from "../ApiRefusals.ts"
import { paged, windowOf } from "./Paging.ts"
import { operator } from "./RequestCaller.ts"

/** The queue, and the processes that run its jobs. */
export const jobsHandlers = (config: Config) => {
  const { admin } = config
  const shown = (job: JobRecord) =>
    Effect.zipWith(jobs.detailOf(job), currentSeconds, (found, now) => jobDetailObject(config, found, now))
  const answeringOne = <E extends { readonly _tag: string; readonly message: string }, R>(
    self: Effect.Effect<JobRecord, E, R>
  ) => answering(Effect.flatMap(self, shown))
  return HttpApiBuilder.group(Api, "jobs", (handlers) =>
    handlers
      .handle("listJobs", ({ query: { kind, limit, offset, orderId, status } }) => {
        const window = windowOf({ limit, offset }, admin.page_size_max)
        if (orderId !== undefined && !isId(orderId)) return Effect.succeed({ items: [], total: 0, ...window })
        const filters = { kind, status, orderId: orderId === undefined ? undefined : OrderId(orderId) }
        return answering(Effect.map(jobs.list(filters, window), (found) => paged(found, jobObject, window)))
      })
      .handle("readJob", ({ params: { id } }) => answeringOne(jobs.find(id)))
      .handle(
        "cancelJob",
        ({ params: { id } }) => answeringOne(Effect.flatMap(operator, (by) => jobs.cancel(by, id)))
      )
      .handle(
        "runJob",
        ({ params: { id } }) => answeringOne(Effect.flatMap(operator, (by) => jobs.runNow(by, id)))
      )
      .handle("readQueue", () =>
        answering(Effect.map(Effect.flatMap(Activity, ({ queue }) => queue), (kinds) => {
          const sum = (of: "ready" | "running" | "failed") => kinds.reduce((all, kind) => all + kind[of], 0)
          return { kinds, ready: sum("ready"), running: sum("running"), failed: sum("failed") }
        })))
      .handle("listWorkers", () =>
        answering(Effect.zipWith(workers.list, currentSeconds, (items, now) => ({
          items: items.map((worker) => workerObject(worker, now))
        })))))
}
