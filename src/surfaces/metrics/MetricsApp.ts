import * as Effect from "effect/Effect"
import type { Answer, App } from "../../engine/http/Message.ts"
import { unmatched } from "../../engine/http/Message.ts"

const contentType = "application/openmetrics-text; version=1.0.0"

const path = "/metrics"

/**
 * Serves GET and HEAD of /metrics, and nothing else. It requires no credential, because access to the port is the
 * permission.
 */
export const make = <R>(scrape: Effect.Effect<string, never, R>): App<R> => ({
  route: ({ clientIp, path: asked }) => ({
    facts: {},
    pattern: asked === path ? path : unmatched,
    clientIp,
    handle: ({ method }): Effect.Effect<Answer, never, R> => {
      if (asked !== path) return Effect.succeed({ status: 404, headers: {} })
      if (method !== "GET" && method !== "HEAD") {
        return Effect.succeed({ status: 405, headers: { allow: "GET, HEAD" } })
      }
      return Effect.map(scrape, (body) => ({ status: 200, headers: { "content-type": contentType }, body }))
    },
    late: () => Effect.succeed({ status: 503, headers: { "retry-after": "5" } })
  })
})
