import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Api } from "../Api.ts"

/** Whether this process serves; asks nobody. */
export const healthHandlers = HttpApiBuilder.group(
  Api,
  "health",
  (handlers) => handlers.handle("readHealth", () => Effect.succeed({ healthy: true as const }))
)
