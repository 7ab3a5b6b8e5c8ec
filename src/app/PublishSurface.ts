import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { trustOf } from "../domain/ClientAddress.ts"
import { emit } from "../domain/words/Log.ts"
import type { Sharing } from "../engine/http/BoundSocket.ts"
import { makeFairSemaphore } from "../engine/net/FairSemaphore.ts"
import type { Issuers } from "../services/signing/Issuers.ts"
import type { ReadHooks } from "../services/signing/ReadHooks.ts"
import type { Config } from "../settings/AppConfig.ts"
import { make } from "../surfaces/publish/Publish.ts"
import type { Surface } from "./Listeners.ts"
import type { Uses } from "./Uses.ts"

/*
 * Serves what the CAs publish, without TLS, on a separate listener (docs/contribute/decisions/listeners.md, "Publishing
 * in clear").
 */

/**
 * The highest number of connections to this listener. A flood of connections here uses up only these, and not the
 * connections that ACME clients need.
 */
const maxConnections = 1024
const slots = 16
const waitMillis = 1000

/**
 * Makes the surface for relying parties, unless `publish.enabled` is off. `services` are the services of the ACME
 * surface. `sharing` says who else accepts connections at the address of the surface.
 */
export const publishSurface = Effect.fnUntraced(function*(
  { filter, profiles, publish, server }: Config,
  services: Context.Context<Issuers | ReadHooks>,
  uses: Uses,
  sharing: Sharing
) {
  if (!publish.enabled) return []
  const mounted = profiles.filter(({ enabled }) => enabled)
  const app = make(new Set(mounted.map(({ name }) => name)), {
    proxies: filter,
    slots: makeFairSemaphore(slots),
    waitMillis
  })
  const proxies = [filter, ...mounted.map((profile) => profile.filter)]
  const surface: Surface = {
    name: "publish",
    key: "publish.bind_address",
    bindAddress: publish.bind_address,
    sharing,
    maxConnections,
    notAfter: () => undefined,
    serve: (listener) =>
      Effect.provide(
        listener.serve({
          app,
          own: new Map(),
          watch: uses,
          ...trustOf(proxies),
          tls: undefined,
          requestTimeoutMillis: server.request_timeout_ms,
          maxBodyBytes: 0,
          maxBodies: slots
        }),
        services
      ),
    listening: (address) => emit("publish_listening", { address })
  }
  return [surface]
})
