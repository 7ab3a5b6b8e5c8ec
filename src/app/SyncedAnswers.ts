import * as Effect from "effect/Effect"
import type { App } from "../engine/http/Message.ts"
import type { Database } from "../engine/sql/Database.ts"
import { oneSync } from "../engine/sql/Synced.ts"

/**
 * Makes each answer of an app wait once for the disk, instead of once for each read (docs/decisions/durability.md). If
 * the sync fails, the process ends, and until then clients get the same answer as for a request that took too long.
 */
export const syncedAnswers = <R>(app: App<R>): App<R | Database> => ({
  route: (received) => {
    const routed = app.route(received)
    return {
      ...routed,
      handle: (request) =>
        Effect.catch(oneSync(Effect.suspend(() => routed.handle(request))), () => routed.late(request))
    }
  }
})
