import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as workers from "../../engine/queue/Workers.ts"
import type { Database } from "../../engine/sql/Database.ts"
import { currentMillis } from "../../engine/Time.ts"
import { prompt } from "./BriefReading.ts"
import type { Samples } from "./Samples.ts"

const keptMillis = 1000

/**
 * Makes the sample that tells a scrape whether the database answers this process: 1 or 0, whatever the roles of the
 * process. The database is queried at most once a second, and concurrent scrapes get the same result. The query uses an
 * ordinary connection like a request, because the readers for operators' lists may be busy while clients are served.
 */
export const make = (role: string): Effect.Effect<Samples, never, Database> => {
  const turns = Semaphore.makeUnsafe(1)
  let last: { readonly at: number; readonly value: number } | undefined
  return turns.withPermits(1)(Effect.gen(function*() {
    const now = yield* currentMillis
    if (last === undefined || now - last.at >= keptMillis || now < last.at) {
      const value = yield* Effect.match(prompt(workers.latest), { onFailure: () => 0, onSuccess: () => 1 })
      last = { at: yield* currentMillis, value }
    }
    return new Map([["acme_svc_database_up", [{ labels: { role }, value: last.value }]]])
  }))
}
