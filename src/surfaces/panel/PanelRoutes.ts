import type { Resolved } from "../../settings/Resolve.ts"
import { accountRoutes } from "./handlers/AccountPages.ts"
import { auditRoutes } from "./handlers/AuditPages.ts"
import { authorityRoutes } from "./handlers/Authorities.ts"
import { campaignRoutes } from "./handlers/CampaignPages.ts"
import { certificateRoutes } from "./handlers/CertificatePages.ts"
import { configurationRoutes } from "./handlers/ConfigurationPage.ts"
import { eabRoutes } from "./handlers/EabPages.ts"
import { expiringRoutes } from "./handlers/ExpiringPage.ts"
import { jobRoutes } from "./handlers/JobPages.ts"
import { kindRoutes } from "./handlers/KindPages.ts"
import { linkRoutes } from "./handlers/LinkPages.ts"
import { nonceRoutes } from "./handlers/NoncePage.ts"
import { notificationRoutes } from "./handlers/NotificationPages.ts"
import { operatorRoutes } from "./handlers/OperatorPages.ts"
import { orderRoutes } from "./handlers/OrderPages.ts"
import { overviewRoutes } from "./handlers/Overview.ts"
import { ownRoutes } from "./handlers/OwnPages.ts"
import { profileRoutes } from "./handlers/ProfilePages.ts"
import { searchRoutes } from "./handlers/SearchPage.ts"
import { signInRoutes } from "./handlers/SignInPages.ts"
import { staticRoutes } from "./handlers/Static.ts"
import { upstreamOrderRoutes } from "./handlers/UpstreamOrderPages.ts"
import { workerRoutes } from "./handlers/WorkerPage.ts"
import type { Route } from "./Route.ts"
import type { Statics } from "./Statics.ts"

const all = (resolved: Pick<Resolved, "config" | "sources">, statics: Statics) => {
  const { config } = resolved
  return [
    ...staticRoutes(statics),
    ...signInRoutes(config),
    ...linkRoutes(config),
    ...overviewRoutes(config),
    ...certificateRoutes(config),
    ...orderRoutes(config),
    ...accountRoutes(config),
    ...eabRoutes(config),
    ...expiringRoutes(config),
    ...campaignRoutes(config),
    ...upstreamOrderRoutes(config),
    ...jobRoutes(config),
    ...notificationRoutes(config),
    ...auditRoutes(config),
    ...searchRoutes,
    ...workerRoutes,
    ...authorityRoutes(config),
    ...profileRoutes(resolved),
    ...kindRoutes(config),
    ...configurationRoutes(resolved),
    ...nonceRoutes(config),
    ...operatorRoutes(config),
    ...ownRoutes(config)
  ]
}

type Needs<T> = T extends Route<infer R> ? R : never

/** The services that the pages need. */
export type PanelServices = Needs<ReturnType<typeof all>[number]>

/** Returns every route of the panel that serves a configuration. */
export const routesOf: (...given: Parameters<typeof all>) => ReadonlyArray<Route<PanelServices>> = all
