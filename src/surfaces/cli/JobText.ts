import type { jobDetailObject } from "../../operations/Objects.ts"
import { renderDetail } from "./Detail.ts"
import type { Rendered } from "./Rendered.ts"

/** `jobs show` for people. */
export const renderJob = (job: ReturnType<typeof jobDetailObject>): Rendered =>
  renderDetail({
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
