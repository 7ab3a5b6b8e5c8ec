import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { Api } from "../Api.ts"

/** Says that this process serves. It asks no other service. */
export const healthHandlers = HttpApiBuilder.group(
  Api,
  "health",
  (handlers) => handlers.handle("readHealth", () => Effect.succeed({ healthy: true as const }))
)
