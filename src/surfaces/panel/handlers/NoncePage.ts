import * as Effect from "effect/Effect"
import * as nonces from "../../../operations/operator/NonceRecords.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { cleanNonces } from "../../operator/acts/NonceActs.ts"
import { submitted } from "../PanelActs.ts"
import { forRole, moved, page } from "../Route.ts"

/** Returns the routes of the page that shows how many replay nonces are stored, and that sweeps them. */
export const nonceRoutes = (config: Config) => [
  forRole("viewer")(
    "GET",
    "/ui/nonces",
    ({ query }) =>
      Effect.map(nonces.count(config), (found) =>
        page("nonces", "Nonces", {
          ...found,
          done: query.get("done") ?? "",
          removed: /^\d{1,15}$/.test(query.get("removed") ?? "") ? Number(query.get("removed")) : 0
        }))
  ),
  forRole("operator")("POST", "/ui/nonces/sweep", (given) =>
    Effect.gen(function*() {
      const { removed } = yield* submitted(cleanNonces, given)
      return moved(`/ui/nonces?done=swept&removed=${removed}`)
    }))
]
