import * as Effect from "effect/Effect"
import { BadRequest } from "../../../domain/OperatorError.ts"
import * as nonces from "../../../operations/NonceRecords.ts"
import type { Config } from "../../../settings/AppConfig.ts"
import { field } from "../PanelForm.ts"
import { forRole, moved, operatorIn, page } from "../Route.ts"

/** Replay nonces: how many are stored, and a sweep. */
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
      const text = field(given.form, "ttlSeconds")
      if (text !== undefined && !/^\d{1,9}$/.test(text)) {
        return yield* new BadRequest({ detail: "The age must be a whole number of seconds, 0 or more." })
      }
      const { removed } = yield* nonces.cleanup(
        config,
        operatorIn(given),
        text === undefined ? undefined : Number(text)
      )
      return moved(`/ui/nonces?done=swept&removed=${removed}`)
    }))
]
