import * as Effect from "effect/Effect"
import type { Entropy } from "../crypto/Entropy.ts"
import { trustOf } from "../domain/ClientAddress.ts"
import { emit } from "../domain/words/Log.ts"
import type { Answering } from "../engine/http/Message.ts"
import type { Config } from "../settings/AppConfig.ts"
import { make } from "../surfaces/metrics/MetricsApp.ts"
import type { Surface } from "./Listeners.ts"

const maxConnections = 16
const requestTimeoutMillis = 10_000

/**
 * Makes the surface for metrics, on a socket of its own, unless `metrics.enabled` is off. `own` are the paths that the
 * listener itself answers.
 */
export const metricsSurface = <R>(
  { metrics: { bind_address, enabled } }: Pick<Config, "metrics">,
  scrape: Effect.Effect<string, never, R>,
  own: ReadonlyMap<string, Answering<never>>
): ReadonlyArray<Surface<R | Entropy>> =>
  enabled
    ? [{
      name: "metrics",
      key: "metrics.bind_address",
      bindAddress: bind_address,
      sharing: "nobody",
      maxConnections,
      notAfter: () => undefined,
      serve: (listener) =>
        listener.serve({
          app: make(scrape),
          own,
          watch: undefined,
          ...trustOf([]),
          tls: undefined,
          requestTimeoutMillis,
          maxBodyBytes: 0,
          maxBodies: maxConnections
        }),
      listening: (address) => emit("metrics_listening", { address })
    }]
    : []
