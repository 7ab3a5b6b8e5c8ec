import { knownKinds } from "../../src/domain/words/JobKind.ts"
import { Queue } from "../../src/engine/queue/Queue.ts"
import type { Backend } from "./Databases.ts"
import { useStore } from "./UseTests.ts"

/** Tests of the queue over a database. */
export const useQueue = (backend: Backend, { maxAttempts = 3, startsAt = 0 } = {}) =>
  useStore(backend, {
    startsAt,
    layer: ({ script = maxAttempts }: { readonly script: number | undefined }) =>
      Queue.layer({ kinds: knownKinds, config: () => ({ jobs: { max_attempts: script } }) })
  })
