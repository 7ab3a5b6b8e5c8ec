import * as Effect from "effect/Effect"
import * as workers from "../../../engine/queue/Workers.ts"
import { currentSeconds } from "../../../engine/Time.ts"
import { workerObject } from "../../../operations/operator/Objects.ts"
import { forRole, page } from "../Route.ts"

/** The route of the page that lists the processes of this service. */
export const workerRoutes = [
  forRole("viewer")("GET", "/ui/workers", () =>
    Effect.gen(function*() {
      const now = yield* currentSeconds
      const rows = (yield* workers.list).map((worker) => workerObject(worker, now))
      const live = rows.filter(({ stale }) => !stale)
      const versions = [...new Set(live.map(({ version }) => version))].toSorted()
      return page("workers", "Workers", {
        rows,
        hasWorker: live.some(({ roles }) => roles.includes("worker")),
        versions: versions.length > 1 ? versions : []
      })
    }))
]
