import * as Effect from "effect/Effect"
import { Queue } from "../../../engine/queue/Queue.ts"

/** Has a worker sign the next list of a CA. Answers the id of the job, which others may have asked for. */
export const enqueueList = (issuer: string) =>
  Effect.flatMap(
    Queue,
    (queue) => queue.enqueue({ kind: "local_ca_crl_regenerate", dedupKey: issuer, payload: { issuer } })
  )
