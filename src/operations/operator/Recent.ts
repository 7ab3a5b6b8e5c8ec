import { decodePayload } from "../../domain/words/JobKind.ts"
import type { JobRecord } from "../../engine/queue/JobRecords.ts"
import * as jobs from "./Jobs.ts"
import { jobObject } from "./Objects.ts"

/** Returns a page of deliveries, newest first, and the total number of stored deliveries. */
export const list = (page: { readonly limit: number; readonly offset: number }) =>
  jobs.list({ kind: "notify_deliver" }, page)

/** A delivery for operators: its job, its receiver and its event. */
export const deliveryObject = (job: JobRecord) => {
  const { attempts, createdAt, id, lastError, maxAttempts, runAt, status, updatedAt } = {
    lastError: undefined,
    ...jobObject(job)
  }
  const told = decodePayload("notify_deliver", job.payload)
  return {
    id,
    ...(told === undefined ? {} : {
      profile: told.scope,
      backend: told.backend,
      entry: told.entry,
      event: told.event,
      deliveryId: told.fields.delivery_id
    }),
    status,
    attempts,
    maxAttempts,
    ...(lastError === undefined ? {} : { lastError }),
    createdAt,
    updatedAt,
    runAt
  }
}
