import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { trustOf } from "../domain/ClientAddress.ts"
import type { Roles } from "../domain/Role.ts"
import { emit } from "../domain/words/Log.ts"
import { supervised } from "../domain/words/Loop.ts"
import { ReverseNames } from "../engine/net/ReverseNames.ts"
import { oneSync } from "../engine/sql/Synced.ts"
import { Activity } from "../operations/operator/Activity.ts"
import { Attention } from "../operations/operator/Attention.ts"
import type { PublicKeys } from "../services/keys/PublicKeys.ts"
import { Policies } from "../services/policy/Policies.ts"
import type { Issuers } from "../services/signing/Issuers.ts"
import type { Config } from "../settings/AppConfig.ts"
import type { Resolved } from "../settings/Resolve.ts"
import { filesFailed } from "./CommandFailed.ts"
import * as Graph from "./Graph.ts"
import type { Installed } from "./Host.ts"
import type { Surface } from "./Listeners.ts"
import * as ListenerTls from "./ListenerTls.ts"
import { readiness } from "./Readiness.ts"
import type { Uses } from "./Uses.ts"

/* The surface for operators, with its services. */

const policyName = "admin"
/** How often the process looks at what needs attention. */
const attentionMillis = 60_000
/**
 * The limits of one process on its connections, and on the bodies that it reads at the same time. There are few
 * operators, so both limits are low.
 */
const maxConnections = 256
const maxBodies = 64

/**
 * The services of the surface: the policy of the listener, those of the profiles, which operators try, the reverse names
 * of clients, and the counts.
 */
const services = (config: Config, version: string) =>
  Layer.mergeAll(
    Graph.deliveriesOf(config, version),
    Graph.policiesOf(config, [
      { name: policyName, filter: config.admin.filter, ipam: config.ipam },
      ...config.profiles.filter(({ enabled }) => enabled)
    ], version),
    Graph.reverseNames(config),
    Activity.layer(config.profiles.map(({ name }) => name)),
    Attention.layer(config)
  )

/** Returns whether a path is for programs. All other paths are for pages. */
const isOfApi = (path: string): boolean => path === "/health" || path === "/api" || path.startsWith("/api/")

/** Makes the surface for operators, unless `admin.enabled` is off. */
export const adminSurface = Effect.fnUntraced(function*(
  resolved: Pick<Resolved, "config" | "sources">,
  { panel, roles, version }: Pick<Installed, "panel" | "version"> & { readonly roles: Roles },
  shared: Context.Context<Issuers | PublicKeys>,
  uses: Uses
) {
  const { config } = resolved
  const { admin } = config
  if (!admin.enabled) return []
  // The module is loaded only here, because the declaration of the API is large and most processes serve no operators.
  const { make } = yield* Effect.promise(() => import("../surfaces/operator/ApiApp.ts"))
  const { makePanel: madePanel } = yield* Effect.promise(() => import("../surfaces/panel/Panel.ts"))
  const { checkServicesOf } = yield* Effect.promise(() => import("../surfaces/operator/gate/Entrance.ts"))
  const built = Context.merge(shared, yield* Effect.provide(Layer.build(services(config, version)), shared))
  const policy = yield* Effect.provide(Effect.map(Policies, (policies) => policies.get(policyName)), built)
  const names = yield* Effect.provide(ReverseNames, built)
  const checkServices = checkServicesOf(admin, { policy, names })
  const api = make(admin, checkServices, { resolved, version, mostRows: admin.page_size_max })
  const pages = yield* Effect.mapError(madePanel(resolved, checkServices, panel, version), filesFailed)
  const { now } = Context.get(built, Attention)
  // The list is also read while nobody looks, so that it says since when all is well.
  const watched = Effect.repeat(Effect.delay(now, attentionMillis), Schedule.forever)
  yield* supervised("attention", watched)
  const own = yield* readiness(roles)
  const tls = yield* ListenerTls.load(config, "admin")
  const surface: Surface = {
    name: "admin",
    key: "admin.bind_address",
    bindAddress: admin.bind_address,
    sharing: "nobody",
    maxConnections,
    notAfter: tls.notAfter,
    serve: (listener) =>
      Effect.andThen(
        Effect.provide(
          listener.serve({
            app: {
              // Each answer waits once for the disk, as on the ACME surface.
              route: (received) => {
                const routed = isOfApi(received.path) ? api.route(received) : pages.route(received)
                return {
                  ...routed,
                  handle: (request) => Effect.catch(oneSync(routed.handle(request)), () => routed.late(request))
                }
              }
            },
            own,
            watch: uses,
            ...trustOf([admin.filter]),
            tls: tls.settings,
            requestTimeoutMillis: config.server.request_timeout_ms,
            maxBodyBytes: admin.max_body_bytes,
            maxBodies
          }),
          built
        ),
        tls.watch(listener)
      ),
    listening: (address) =>
      Effect.andThen(
        emit("admin_listening", { address, tls: tls.settings !== undefined }),
        emit("admin_origin_resolved", { origin: new URL(admin.base_url).origin })
      )
  }
  return [surface]
})
