import type { Resolved } from "../../settings/Resolve.ts"
import { ownRoutes } from "./handlers/Account.ts"
import { accountRoutes } from "./handlers/Accounts.ts"
import { auditRoutes } from "./handlers/Audit.ts"
import { authorityRoutes } from "./handlers/Authorities.ts"
import { configurationRoutes } from "./handlers/Configuration.ts"
import { eabRoutes } from "./handlers/Eab.ts"
import { expiringRoutes } from "./handlers/Expiring.ts"
import { jobRoutes } from "./handlers/Jobs.ts"
import { nonceRoutes } from "./handlers/Nonces.ts"
import { notificationRoutes } from "./handlers/Notifications.ts"
import { operatorRoutes } from "./handlers/Operators.ts"
import { orderRoutes } from "./handlers/Orders.ts"
import { overviewRoutes } from "./handlers/Overview.ts"
import { profileRoutes } from "./handlers/Profiles.ts"
import { searchRoutes } from "./handlers/Search.ts"
import { signInRoutes } from "./handlers/SignIn.ts"
import { staticRoutes } from "./handlers/Static.ts"
import { upstreamOrderRoutes } from "./handlers/UpstreamOrders.ts"
import { workerRoutes } from "./handlers/Workers.ts"
import type { Route } from "./Route.ts"
import type { Statics } from "./Statics.ts"

const all = (resolved: Pick<Resolved, "config" | "sources">, statics: Statics) => {
  const { config } = resolved
  return [
    ...staticRoutes(statics),
    ...signInRoutes(config),
    ...overviewRoutes(config),
    ...orderRoutes(config),
    ...accountRoutes(config),
    ...eabRoutes(config),
    ...expiringRoutes(config),
    ...upstreamOrderRoutes(config),
    ...jobRoutes(config),
    ...notificationRoutes(config),
    ...auditRoutes(config),
    ...searchRoutes,
    ...workerRoutes,
    ...authorityRoutes(config),
    ...profileRoutes(config),
    ...configurationRoutes(resolved),
    ...nonceRoutes(config),
    ...operatorRoutes(config),
    ...ownRoutes(config)
  ]
}

type Needs<T> = T extends Route<infer R> ? R : never

/** The services that the pages ask for. */
export type PanelServices = Needs<ReturnType<typeof all>[number]>

/** Every route of the panel, for a configuration. */
export const routesOf: (...given: Parameters<typeof all>) => ReadonlyArray<Route<PanelServices>> = all
