import * as Effect from "effect/Effect"
import * as Struct from "effect/Struct"
import type { StorageFailed } from "../sql/Database.ts"
import type { Failure } from "./Failure.ts"
import type { AnyHandler, Handler } from "./Handler.ts"
import { everything } from "./Handler.ts"
import type { JobId } from "./Job.ts"
import type { Kind } from "./Kind.ts"
import { knownOf } from "./Kind.ts"
import type { Enqueue } from "./Queue.ts"
import { Queue } from "./Queue.ts"

/** The queue as programs use it, typed by the kinds of their jobs. */
export const makeJobs = <P extends { readonly [kind: string]: unknown }>(
  kinds: { readonly [K in keyof P]: Kind<P[K]> },
  { groupName }: { readonly groupName: string }
) => {
  const known = knownOf(kinds, groupName)
  return {
    known,
    names: Struct.keys(kinds),
    cancel: known.cancel,

    enqueue: <K extends keyof P & string>(job: Enqueue<K, P[K]>): Effect.Effect<JobId, StorageFailed, Queue> =>
      Queue.use((queue) => queue.enqueue({ ...job, payload: kinds[job.kind].encode(job.payload) })),

    decodePayload: <K extends keyof P & string>(kind: K, text: string): P[K] | undefined => kinds[kind].decode(text),

    handler: <K extends keyof P & string, R, F extends Failure = Failure>(
      self: Handler<K, P[K], R, F>
    ): AnyHandler<R, F> => {
      const { decode, encode, periodic = false } = kinds[self.kind]
      const subjects = self.subjects?.map(({ key, payload }) => ({ key, payload: encode(payload) }))
      return {
        kind: self.kind,
        reachSeconds: self.reachSeconds ?? 0,
        periodic,
        subjects: subjects ?? (periodic ? [everything] : []),
        looksAgain: subjects !== undefined,
        prepare: (job) => {
          const payload = decode(job.payload)
          return payload === undefined ? undefined : {
            budgetMillis: self.budgetMillis(payload),
            run: self.run(payload, job),
            abandon: (failure) => self.abandon(payload, failure, job)
          }
        }
      }
    }
  }
}
